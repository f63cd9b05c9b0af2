"""Publishing over HTTP through one gateway to one broker, next to AMQP and NATS with confirms."""

from typing import Final

from benchmarks import processes
from benchmarks.bench import Bench, run_load
from benchmarks.peers import nats
from benchmarks.peers.nats import Nats
from benchmarks.peers.peer import Flush
from benchmarks.peers.rabbitmq import RabbitMq
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.gateway_queues import FLUSHES, running_gateway

CONNECTIONS: Final = 64
VALUE_SIZE: Final = 1_000
# Records per request, the row's name, and how many a gateway core must handle.
BATCHES: Final = ((1, "single", 5_000.0), (100, "batched by 100", 100_000.0))


def gateway_publish(bench: Bench) -> None:
    """A second of the gateway's own processor time counts as one core, whatever else runs."""
    for flush in FLUSHES:
        server = bench.server(bench.subject(), flush)
        with running_gateway(bench, server) as (url, pid):
            for batch, name, asked in BATCHES:
                label = f"{name}, {CONNECTIONS} connections, {VALUE_SIZE} B, flush {flush}"
                speed = Row("publish", label, "records/s", Better.HIGHER)
                cost = Row(
                    "publish",
                    f"{label}, gateway alone",
                    "records/CPU s",
                    Better.HIGHER,
                    Requirement(value_min=asked),
                )
                for _ in range(bench.effort.rounds):
                    with bench.topic(server, flush, partitions=4) as topic:
                        before = processes.processor_seconds(pid)
                        outcome = run_load(
                            "http_publish",
                            url=url,
                            topic=topic,
                            connections=CONNECTIONS,
                            batch=batch,
                            value_size=VALUE_SIZE,
                            seconds=_seconds(bench),
                        )
                        used = processes.processor_seconds(pid) - before
                    bench.results.record(speed, SUBJECT, outcome["records_per_second"])
                    bench.results.record(cost, SUBJECT, outcome["records"] / used)
                if batch == 1:
                    (_publish_over_amqp if flush is Flush.ACK else _publish_to_nats)(bench, speed)
                bench.say(f"gateway: publish, {label}")


def _seconds(bench: Bench) -> float:
    return bench.effort.seconds * 3


def _publish_over_amqp(bench: Bench, row: Row) -> None:
    """It syncs what it confirms."""
    peer = bench.guest(RabbitMq.name)
    if peer is None:
        return
    with bench.fresh_server(peer, Flush.ACK) as server:
        arguments = {"address": server.address, "connections": CONNECTIONS}
        for number in range(bench.effort.rounds):
            outcome = run_load(
                "amqp_publish",
                queue=f"bench-{number}",
                value_size=VALUE_SIZE,
                seconds=_seconds(bench),
                **arguments,
            )
            bench.results.record(row, peer.name, outcome["records_per_second"])


def _publish_to_nats(bench: Bench, row: Row) -> None:
    """It does not sync; as many messages are in flight, on one connection."""
    peer = bench.guest(Nats.name)
    if peer is None:
        return
    with bench.fresh_server(peer, Flush.OS) as server:
        with nats.connect(server.address) as connection:
            nats.create_stream(connection)
        for _ in range(bench.effort.rounds):
            outcome = run_load(
                "nats_publish",
                address=server.address,
                value_size=VALUE_SIZE,
                in_flight=CONNECTIONS,
                seconds=_seconds(bench),
            )
            bench.results.record(row, peer.name, outcome["requests_per_second"])
