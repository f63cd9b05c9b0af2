"""Receive and acknowledge over HTTP through one gateway, next to AMQP."""

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
from benchmarks.peers.peer import Flush, Server
from benchmarks.peers.rabbitmq import RabbitMq
from benchmarks.results import SUBJECT, Better, Requirement, Row

CONNECTIONS: Final = 64
BATCH: Final = 10
VALUE_SIZE: Final = 1_000
MESSAGES: Final = 100_000
FLUSHES: Final = (Flush.ACK, Flush.OS)
ASKED: Final = Requirement(value_min=10_000.0)


def gateway_queues(bench: Bench) -> None:
    """At least 10,000 messages per second; also the gateway's processor use."""
    count = MESSAGES if bench.effort.heavy else MESSAGES // 10
    for flush in FLUSHES:
        label = f"{CONNECTIONS} connections, batches of {BATCH}, {VALUE_SIZE} B, flush {flush}"
        speed = Row("receive + ack", label, "messages/s", Better.HIGHER, ASKED)
        cost = Row("receive + ack", f"{label}, gateway alone", "messages/CPU s", Better.HIGHER)
        server = bench.server(bench.subject(), flush)
        with running_gateway(bench, server) as (url, pid):
            for _ in range(bench.effort.rounds):
                with bench.topic(server, flush, partitions=4) as topic:
                    run_load(
                        "confluent_produce",
                        address=server.address,
                        topic=topic,
                        value_size=VALUE_SIZE,
                        count=count,
                    )
                    before = processes.processor_seconds(pid)
                    outcome = run_load(
                        "http_queue",
                        url=url,
                        topic=topic,
                        count=count,
                        connections=CONNECTIONS,
                        batch=BATCH,
                    )
                    used = processes.processor_seconds(pid) - before
                bench.results.record(speed, SUBJECT, outcome["messages_per_second"])
                bench.results.record(cost, SUBJECT, outcome["messages"] / used)
        if flush is Flush.OS:
            _consume_over_amqp(bench, speed, count)
        bench.say(f"gateway: receive + ack, {label}")


def _consume_over_amqp(bench: Bench, row: Row, count: int) -> None:
    """Its acknowledgements are not confirmed, and not synced."""
    peer = bench.guest(RabbitMq.name)
    if peer is None:
        return
    with bench.fresh_server(peer, Flush.OS) as server:
        for number in range(bench.effort.rounds):
            outcome = run_load(
                "amqp_queue",
                address=server.address,
                queue=f"bench-{number}",
                count=count,
                connections=CONNECTIONS,
                batch=BATCH,
                value_size=VALUE_SIZE,
            )
            bench.results.record(row, peer.name, outcome["messages_per_second"])


@contextmanager
def running_gateway(bench: Bench, server: Server) -> Iterator[tuple[str, int]]:
    """The address and the process id of a gateway before the server."""
    port = processes.free_port()
    log = Path(bench.directory) / f"gateway-{port}.log"
    command = [sys.executable, "-m", "ottla", "gateway", "--bootstrap-server", server.address]
    process = processes.spawn([*command, "--port", str(port)], log)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not _is_ready(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the gateway did not start: {log.read_text()}")
            time.sleep(0.05)
        yield url, process.pid
    finally:
        processes.stop(process)


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
