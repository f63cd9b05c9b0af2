"""Messages sent, received and deleted as an SQS client does, beside ElasticMQ."""

from typing import Final

from benchmarks.bench import Bench, run_load
from benchmarks.peers.peer import Flush
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.gateway_queues import FLUSHES, running_gateway

ON_DISK: Final = "elasticmq"
PEERS: Final = (ON_DISK, "elasticmq in memory")
CONNECTIONS: Final = 16
MESSAGES: Final = 20_000
# Neither syncs every message then; with flush ack Ottla does, and ElasticMQ never.
TWICE: Final = {Flush.OS: Requirement(ratio_min=2.0, reference=ON_DISK)}


def gateway_sqs(bench: Bench) -> None:
    count = MESSAGES if bench.effort.heavy else MESSAGES // 10
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
    for flush, row in rows.items():
        with running_gateway(bench, bench.server(bench.subject(), flush)) as (url, _):
            for _ in range(bench.effort.rounds):
                bench.results.record(row, SUBJECT, _speed(url, count))
    for name in PEERS:
        peer = bench.guest(name)
        if peer is None:
            continue
        with bench.fresh_server(peer, Flush.OS) as server:
            url = f"http://{server.address}"
            _speed(url, count)  # A JVM gets faster.
            for _ in range(bench.effort.rounds):
                speed = _speed(url, count)
                for row in rows.values():
                    bench.results.record(row, name, speed)
    bench.say("gateway: SQS")


def _speed(url: str, count: int) -> float:
    outcome = run_load("sqs_cycle", url=url, count=count, connections=CONNECTIONS)
    return outcome["messages_per_second"]
