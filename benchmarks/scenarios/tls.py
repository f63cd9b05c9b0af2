"""TLS 1.3: produce and consume of 1 KB messages, and handshakes, next to the same without TLS.

librdkafka puts each message into its own TLS record, which costs both sides; ready-made batches are
sent in records of 16 KB, as Java's client sends them.
"""

from contextlib import ExitStack
from typing import Protocol, cast

from benchmarks.bench import Bench, Outcome, run_load, run_measured_load
from benchmarks.locked import LockedServer, locked_server
from benchmarks.peers.peer import ClusterPeer, Flush, Server
from benchmarks.results import Better, Requirement, Row
from benchmarks.scenarios.produce import AT_LEAST_KAFKA

SIZE = 1024
CONSUMED_BYTES = 600_000_000
RAW_RECORDS, RAW_IN_FLIGHT = 64, 5
SHARE_OF_PLAINTEXT = Requirement(value_min=0.6)

Doors = dict[str, LockedServer]


class Measure(Protocol):
    def __call__(
        self, bench: Bench, door: LockedServer, *, over_tls: bool, seconds: float
    ) -> Outcome: ...


def tls(bench: Bench) -> None:
    with ExitStack() as stack:
        doors = {
            peer.name: stack.enter_context(locked_server(bench, cast("ClusterPeer", peer)))
            for peer in bench.peers
        }
        _throughput(bench, doors, "produce", _produce)
        _throughput(bench, doors, "produce, raw", _produce_raw)
        _throughput(bench, doors, "consume", _consume)
        _handshakes(bench, doors)


def _throughput(bench: Bench, doors: Doors, kind: str, measure: Measure) -> None:
    is_raw = measure is _produce_raw
    at_least = Requirement() if is_raw else AT_LEAST_KAFKA
    over_tls = Row(f"{kind} over TLS", "TLS 1.3, 1 KB", "MB/s", Better.HIGHER, at_least)
    plain = Row(f"{kind} over TLS", "plaintext, 1 KB", "MB/s", Better.HIGHER)
    asked = Requirement() if measure is _consume else SHARE_OF_PLAINTEXT
    share = Row(f"{kind} over TLS", "TLS, part of plaintext", "", Better.HIGHER, asked)
    cost = Row(f"processor, {kind} over TLS", "TLS 1.3, 1 KB", "s/GB", Better.LOWER)
    plain_cost = Row(f"processor, {kind} over TLS", "plaintext, 1 KB", "s/GB", Better.LOWER)
    for peer in bench.peers:
        measure(bench, doors[peer.name], over_tls=True, seconds=peer.warm_seconds())
    for peer in bench.in_turn(bench.effort.rounds):
        speeds = {}
        for is_tls in (True, False):
            outcome = measure(
                bench, doors[peer.name], over_tls=is_tls, seconds=bench.effort.seconds
            )
            speeds[is_tls] = outcome["megabytes_per_second"]
            row, row_of_cost = (over_tls, cost) if is_tls else (plain, plain_cost)
            bench.results.record(row, peer.name, speeds[is_tls])
            spent = outcome["processor_seconds_per_gigabyte"]
            bench.results.record(row_of_cost, peer.name, spent)
        bench.results.record(share, peer.name, speeds[True] / speeds[False])
    bench.say(f"{kind} over TLS")


def _produce(bench: Bench, door: LockedServer, *, over_tls: bool, seconds: float) -> Outcome:
    with bench.topic(door.plain, Flush.OS) as topic:
        return run_measured_load(
            _server(door, over_tls),
            "confluent_produce",
            topic=topic,
            value_size=SIZE,
            seconds=seconds,
            authority=door.authority if over_tls else "",
        )


def _produce_raw(bench: Bench, door: LockedServer, *, over_tls: bool, seconds: float) -> Outcome:
    with bench.topic(door.plain, Flush.OS) as topic:
        return run_measured_load(
            _server(door, over_tls),
            "raw_produce",
            topic=topic,
            records=RAW_RECORDS,
            value_size=SIZE,
            in_flight=RAW_IN_FLIGHT,
            seconds=seconds,
            authority=door.authority if over_tls else "",
        )


def _consume(bench: Bench, door: LockedServer, *, over_tls: bool, seconds: float) -> Outcome:
    """Reads a topic that was just written, as often as needed; the last time counts."""
    with bench.topic(door.plain, Flush.OS) as topic:
        count = int(CONSUMED_BYTES * min(1.0, bench.effort.seconds / 3)) // SIZE
        filled = run_load(
            "confluent_produce",
            address=door.plain.address,
            topic=topic,
            value_size=SIZE,
            count=count,
        )
        for _ in range(max(1, round(seconds / 4))):
            outcome = run_measured_load(
                _server(door, over_tls),
                "confluent_consume",
                topic=topic,
                count=int(filled["messages"]),
                authority=door.authority if over_tls else "",
            )
    return outcome


def _handshakes(bench: Bench, doors: Doors) -> None:
    """A client may ask to resume a session; the broker decides."""
    for peer in bench.peers:
        for resume in (0, 1):
            _shake_hands(doors[peer.name], resume, peer.warm_seconds() / 2)
    for resume, kind in enumerate(("full", "resumed")):
        rate = Row("handshakes", f"{kind}, TLS 1.3", "/s", Better.HIGHER, AT_LEAST_KAFKA)
        cost = Row("handshakes", f"{kind}, processor", "ms", Better.LOWER)
        granted = Row("handshakes", f"{kind}, part that was resumed", "", Better.HIGHER)
        for peer in bench.in_turn(bench.effort.rounds):
            outcome = _shake_hands(doors[peer.name], resume, bench.effort.seconds)
            bench.results.record(rate, peer.name, outcome["handshakes_per_second"])
            spent_ms = outcome["processor_seconds_per_gigabyte"] / 1e6
            bench.results.record(cost, peer.name, spent_ms)
            if resume:
                share = outcome["resumed"] / outcome["handshakes"]
                bench.results.record(granted, peer.name, share)
        bench.say(f"handshakes: {kind}")


def _shake_hands(door: LockedServer, resume: int, seconds: float) -> Outcome:
    return run_measured_load(
        door.tls, "tls_handshakes", authority=door.authority, resume=resume, seconds=seconds
    )


def _server(door: LockedServer, over_tls: bool) -> Server:
    return door.tls if over_tls else door.plain
