"""A webhook receiver that answers as a test says."""

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

PATIENCE_S = 240


class Call(NamedTuple):
    headers: Mapping[str, str]  # Lower-case names.
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    def __init__(self, answer: Callable[[Call], int] = lambda _: 204) -> None:
        self.answer = answer
        self.calls: list[Call] = []
        self._arrived = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                headers = {name.lower(): value for name, value in self.headers.items()}
                call = Call(headers, self.rfile.read(size))
                status = receiver.answer(call)
                self.send_response(status)
                self.end_headers()
                receiver._take(call)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, condition: Callable[[list[Call]], bool]) -> list[Call]:
        with self._arrived:
            assert self._arrived.wait_for(lambda: condition(self.calls), PATIENCE_S), self.calls
            return list(self.calls)

    def _take(self, call: Call) -> None:
        with self._arrived:
            self.calls.append(call)
            self._arrived.notify_all()
