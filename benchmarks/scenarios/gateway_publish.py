"""Publish over HTTP, through one gateway before one broker."""

from typing import Final

from benchmarks import processes
from benchmarks.bench import Bench, run_load
from benchmarks.peers.peer import Flush
from benchmarks.results import SUBJECT, Better, Row
from benchmarks.scenarios.gateway_queues import running_gateway

CONNECTIONS: Final = 64
VALUE_SIZE: Final = 1_000
BATCHES: Final = {1: "single", 100: "batched by 100"}
SECONDS: Final = 10.0


def gateway_publish(bench: Bench) -> None:
    """At least 5,000 single records a second on one core of gateway, and 100,000 in batches.

    A second of the gateway's own processor time is one core of it, whatever else the machine does.
    """
    peer = next(peer for peer in bench.peers if peer.name == SUBJECT)
    server = bench.server(peer, Flush.ACK)
    with running_gateway(bench, server) as (url, pid):
        for batch, name in BATCHES.items():
            label = f"publish, {name}, {CONNECTIONS} connections, {VALUE_SIZE} B"
            speed = Row("gateway publish", label, "records/s", Better.HIGHER)
            cost = Row("gateway publish", f"{label}, gateway alone", "records/CPU s", Better.HIGHER)
            for _ in range(bench.effort.rounds):
                with bench.topic(server, Flush.ACK, partitions=4) as topic:
                    before = processes.processor_seconds(pid)
                    outcome = run_load(
                        "http_publish",
                        url=url,
                        topic=topic,
                        connections=CONNECTIONS,
                        batch=batch,
                        value_size=VALUE_SIZE,
                        seconds=SECONDS if bench.effort.heavy else SECONDS / 5,
                    )
                    used = processes.processor_seconds(pid) - before
                bench.results.record(speed, SUBJECT, outcome["records_per_second"])
                bench.results.record(cost, SUBJECT, outcome["records"] / used)
            bench.say(f"gateway: {label}")
