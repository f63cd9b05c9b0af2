"""What a gateway costs the broker beside it while nobody calls it."""

from typing import Final

from benchmarks.bench import Bench, run_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.gateway_queues import running_gateway

IN_FLIGHT: Final = 50
VALUE_SIZE: Final = 1_000
BESIDE: Final = Row(
    "broker beside a gateway",
    f"produce, 1 connection x {IN_FLIGHT} in flight, {VALUE_SIZE} B, gateway idle",
    "of the rate without",
    Better.HIGHER,
    Requirement(value_min=0.98),
)


def gateway_idle(bench: Bench) -> None:
    """With and without take turns: the machine's speed drifts."""
    server = bench.server(bench.subject(), Flush.OS)
    with running_gateway(bench, server), bench.topic(server, Flush.OS) as topic:
        _speed(server, topic, bench.effort.seconds)
    for index in range(2 * bench.effort.rounds):
        with bench.topic(server, Flush.OS) as topic:
            if index % 2:
                without = _speed(server, topic, bench.effort.seconds * 2)
            with running_gateway(bench, server):
                beside = _speed(server, topic, bench.effort.seconds * 2)
            if not index % 2:
                without = _speed(server, topic, bench.effort.seconds * 2)
        bench.results.record(BESIDE, SUBJECT, beside / without)
    bench.say("gateway: the broker beside it")


def _speed(server: Server, topic: str, seconds: float) -> float:
    outcome = run_load(
        "raw_produce",
        address=server.address,
        topic=topic,
        in_flight=IN_FLIGHT,
        value_size=VALUE_SIZE,
        seconds=seconds,
    )
    return outcome["requests_per_second"]
