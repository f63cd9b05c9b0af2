"""Messages sent, received and deleted as an SQS client does, beside moto's server.

moto keeps messages in memory and is there to be tested against; it is what Python teams have in
place of SQS. It is measured where it is installed (`pip install 'moto[server]'`).
"""

import importlib.util
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import processes
from benchmarks.bench import READY_SECONDS_MAX, Bench, run_load
from benchmarks.peers.peer import Flush
from benchmarks.results import SUBJECT, Better, Row
from benchmarks.scenarios.gateway_queues import running_gateway

MOTO: Final = "moto"
CONNECTIONS: Final = 16
MESSAGES: Final = 20_000


def gateway_sqs(bench: Bench) -> None:
    """At least twice the messages of the peer."""
    count = MESSAGES if bench.effort.heavy else MESSAGES // 10
    label = f"send + receive + delete, {CONNECTIONS} connections, batches of 10, 1000 B"
    row = Row("gateway SQS", label, "messages/s", Better.HIGHER)
    peer = next(peer for peer in bench.peers if peer.name == SUBJECT)
    server = bench.server(peer, Flush.ACK)
    with running_gateway(bench, server) as (url, _):
        for _ in range(bench.effort.rounds):
            bench.results.record(row, SUBJECT, _speed(url, count))
    if importlib.util.find_spec(MOTO) is None:
        bench.say("moto is not installed; SQS is measured without a peer")
        return
    with _running_moto(bench) as url:
        for _ in range(bench.effort.rounds):
            bench.results.record(row, MOTO, _speed(url, count))
    bench.say(f"gateway SQS: {label}")


def _speed(url: str, count: int) -> float:
    outcome = run_load("sqs_cycle", url=url, count=count, connections=CONNECTIONS)
    return float(outcome["messages_per_second"])


@contextmanager
def _running_moto(bench: Bench) -> Iterator[str]:
    port = processes.free_port()
    log = Path(bench.directory) / f"moto-{port}.log"
    process = processes.spawn([sys.executable, "-m", "moto.server", "-p", str(port)], log)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"moto did not start: {log.read_text()}")
            time.sleep(0.05)
        yield url
    finally:
        processes.stop(process)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except urllib.error.HTTPError:
        return True
    except (urllib.error.URLError, OSError):
        return False
