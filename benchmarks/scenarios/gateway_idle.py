"""What an idle gateway costs the broker next to it.

Legs of one second alternate: without, with, with, without, and reversed in the next round, because
the machine's speed drifts and long legs would measure that. The broker's processor time per request
is reported with the rate, and so is the gateway's: a sleeping gateway costs the broker nothing, and
what remains is noise. Under `chrt --rr 10`, which all processes of the run inherit, other work
disturbs the figures less.
"""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from benchmarks import processes
from benchmarks.bench import Bench, run_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.gateway_queues import running_gateway

IN_FLIGHT: Final = 50
VALUE_SIZE: Final = 1_000
ROUNDS: Final = 5  # For each one of the run.
BESIDE: Final = Row(
    "broker beside a gateway",
    f"produce, 1 connection x {IN_FLIGHT} in flight, {VALUE_SIZE} B, gateway idle",
    "of the rate without",
    Better.HIGHER,
    Requirement(value_min=0.98),
)
COST: Final = Row(
    "broker beside a gateway",
    "the broker's processor time for a request, gateway idle",
    "of that without",
    Better.LOWER,
)
GATEWAY: Final = Row(
    "broker beside a gateway",
    "processor time of the idle gateway itself",
    "ms/s",
    Better.LOWER,
)
_LOOK_S: Final = 0.5
_BUSY_S_MAX: Final = 0.01  # Processor time between two samples.
_SETTLE_S_MAX: Final = 30.0


class Leg(NamedTuple):
    requests: float
    seconds: float  # In which the requests were answered.
    answered: float  # Including those before and after.
    processor_seconds: float  # Of the broker, for those requests.


def gateway_idle(bench: Bench) -> None:
    server = bench.server(bench.subject(), Flush.OS)
    seconds = bench.effort.seconds / 2
    for index in range(ROUNDS * bench.effort.rounds):
        with bench.topic(server, Flush.OS) as topic:
            _legs(1, server, topic, seconds)  # The first request to a new topic costs more.
            if index % 2:
                beside = _beside(bench, 1, server, topic, seconds)
                without = _legs(2, server, topic, seconds)
                beside += _beside(bench, 1, server, topic, seconds)
            else:
                without = _legs(1, server, topic, seconds)
                beside = _beside(bench, 2, server, topic, seconds)
                without += _legs(1, server, topic, seconds)
        bench.results.record(BESIDE, SUBJECT, _rate(beside) / _rate(without))
        bench.results.record(COST, SUBJECT, _cost(beside) / _cost(without))
    bench.say("gateway: the broker beside it")


def _rate(legs: Sequence[Leg]) -> float:
    return sum(leg.requests for leg in legs) / sum(leg.seconds for leg in legs)


def _cost(legs: Sequence[Leg]) -> float:
    return sum(leg.processor_seconds for leg in legs) / sum(leg.answered for leg in legs)


def _beside(bench: Bench, count: int, server: Server, topic: str, seconds: float) -> list[Leg]:
    with running_gateway(bench, server) as (_, pid):
        _wait_until_idle(pid)
        before_s, begun_s = processes.processor_seconds(pid), time.monotonic()
        legs = _legs(count, server, topic, seconds)
        used_s = processes.processor_seconds(pid) - before_s
        bench.results.record(GATEWAY, SUBJECT, used_s / (time.monotonic() - begun_s) * 1e3)
        return legs


def _legs(count: int, server: Server, topic: str, seconds: float) -> list[Leg]:
    return [_run_leg(server, topic, seconds) for _ in range(count)]


def _wait_until_idle(pid: int) -> None:
    """A gateway that has just become ready still has work to do."""
    deadline = time.monotonic() + _SETTLE_S_MAX
    used = 1.0
    while used > _BUSY_S_MAX and time.monotonic() < deadline:
        before = processes.processor_seconds(pid)
        time.sleep(_LOOK_S)
        used = processes.processor_seconds(pid) - before


def _run_leg(server: Server, topic: str, seconds: float) -> Leg:
    before = processes.processor_seconds(server.pid)
    outcome = run_load(
        "raw_produce",
        address=server.address,
        topic=topic,
        in_flight=IN_FLIGHT,
        value_size=VALUE_SIZE,
        seconds=seconds,
    )
    used = processes.processor_seconds(server.pid) - before
    return Leg(outcome["requests"], outcome["seconds"], outcome["bytes"] / VALUE_SIZE, used)
