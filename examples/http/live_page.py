"""A web page that shows records as they are written, fed by server-sent events.

This server serves the page and forwards the gateway's stream, because a browser only accepts events
from the page's own origin. In production a reverse proxy does that. Run `ottla serve --http 8080`,
then `python examples/http/live_page.py`, open the address that it prints, and write to the topic:
`ottla produce prices '{"item": "lamp", "cents": 4900}'`.
"""

import contextlib
import os
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GATEWAY = os.environ.get("OTTLA_GATEWAY_URL", "http://localhost:8080")
PORT = int(os.environ.get("PORT", "8000"))
STREAM = "/topics/prices/stream"

PAGE = b"""<!doctype html>
<title>Prices</title>
<h1>Prices</h1>
<table id="prices"></table>
<script>
  const rows = {};
  const source = new EventSource("/topics/prices/stream?offset=earliest");
  source.onmessage = event => {
    const price = JSON.parse(JSON.parse(event.data).value);
    if (!(price.item in rows)) {
      rows[price.item] = document.getElementById("prices").insertRow();
      rows[price.item].insertCell().textContent = price.item;
      rows[price.item].insertCell();
    }
    rows[price.item].cells[1].textContent = (price.cents / 100).toFixed(2);
  };
</script>
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/":
            self._answer("text/html")
            self.wfile.write(PAGE)
        elif self.path.partition("?")[0] == STREAM:
            self._pass_on()
        else:
            self.send_error(404)

    def _pass_on(self) -> None:
        request = urllib.request.Request(GATEWAY + self.path)
        if (last := self.headers["Last-Event-ID"]) is not None:
            request.add_header("Last-Event-ID", last)  # The browser resumes.
        try:
            events = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            self.send_error(error.code)
            return
        with events, contextlib.suppress(ConnectionError):  # The browser is gone.
            self._answer("text/event-stream")
            for line in events:
                self.wfile.write(line)

    def _answer(self, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.end_headers()


server = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
server.daemon_threads = True
print(f"the page is on http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
