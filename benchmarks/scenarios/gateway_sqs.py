"""Messages sent, received and deleted by an SQS client, next to ElasticMQ.

All servers run all the time and take turns: the machine's speed drifts.
"""

from contextlib import ExitStack
from typing import Final, NamedTuple

from benchmarks.bench import Bench, run_load
from benchmarks.peers.peer import Flush
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.gateway_queues import FLUSHES, running_gateway

ON_DISK: Final = "elasticmq"
PEERS: Final = (ON_DISK, "elasticmq in memory")
CONNECTIONS: Final = 16
# Neither syncs every message then; with flush ack Ottla does, and ElasticMQ never.
TWICE: Final = {Flush.OS: Requirement(ratio_min=2.0, reference=ON_DISK)}
LENGTH: Final = 4  # Of a load, in measurements of the run.
WARM_LENGTH: Final = 10  # A JVM gets faster.


class Target(NamedTuple):
    name: str
    url: str
    rows: tuple[Row, ...]  # Its speed is recorded in.


def gateway_sqs(bench: Bench) -> None:
    with ExitStack() as stack:
        targets = _start(bench, stack)
        for target in targets:
            _speed(bench, target, WARM_LENGTH * bench.effort.seconds)
        for index in range(bench.effort.rounds):
            for target in targets if index % 2 == 0 else reversed(targets):
                speed = _speed(bench, target, LENGTH * bench.effort.seconds)
                for row in target.rows:
                    bench.results.record(row, target.name, speed)
    bench.say("gateway: SQS")


def _start(bench: Bench, stack: ExitStack) -> list[Target]:
    rows = {
        flush: Row(
            "SQS send + receive + delete",
            f"{CONNECTIONS} connections, batches of 10, 1000 B, flush {flush}",
            "messages/s",
            Better.HIGHER,
            TWICE.get(flush, Requirement()),
        )
        for flush in FLUSHES
    }
    targets = []
    for flush, row in rows.items():
        gateway = running_gateway(bench, bench.server(bench.subject(), flush))
        url, _ = stack.enter_context(gateway)
        targets.append(Target(SUBJECT, url, (row,)))
    for name in PEERS:
        peer = bench.guest(name)
        if peer is not None:
            server = stack.enter_context(bench.fresh_server(peer, Flush.OS))
            targets.append(Target(name, f"http://{server.address}", tuple(rows.values())))
    return targets


def _speed(bench: Bench, target: Target, seconds: float) -> float:
    outcome = run_load("sqs_cycle", url=target.url, seconds=seconds, connections=CONNECTIONS)
    if outcome["failed"]:
        bench.say(f"gateway: SQS: {outcome['failed']:.0f} calls of {target.name} failed")
    return outcome["messages_per_second"]
