"""Produce throughput: message sizes, partitions, acks and flush policies."""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.bench import Bench, Outcome, run_measured_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.results import Better, Requirement, Row

SIZES = (100, 1024, 16_384)
PARTITIONS = (1, 8)
ACKS = ("0", "1", "all")
AT_LEAST_KAFKA = Requirement(ratio_min=1.0)
FLUSHED = Requirement(ratio_min=1.5)
RAW_BATCH_SIZES = {"16 KB": 16, "256 KB": 256}


class Case(NamedTuple):
    size: int
    partitions: int
    acks: str
    flush: Flush
    idempotent: bool = False

    @property
    def label(self) -> str:
        plural = "s" if self.partitions > 1 else ""
        size = f"{self.size} B" if self.size < 1024 else f"{self.size // 1024} KB"
        acks = f"acks={self.acks}" + (", idempotent" if self.idempotent else "")
        return f"{size}, {self.partitions} partition{plural}, {acks}, flush {self.flush}"

    @property
    def requirement(self) -> Requirement:
        if (self.size, self.partitions, self.acks, self.idempotent) != (1024, 1, "all", False):
            return Requirement()
        return {Flush.OS: AT_LEAST_KAFKA, Flush.ACK: FLUSHED}.get(self.flush, Requirement())


def cases(full: bool) -> Iterator[Case]:
    """Every size, partition count and acks at flush os; other policies where they matter."""
    if not full:
        yield from (Case(1024, 1, "all", flush) for flush in (Flush.OS, Flush.ACK))
        return
    for size in SIZES:
        for partitions in PARTITIONS:
            yield from (Case(size, partitions, acks, Flush.OS) for acks in ACKS)
            yield Case(size, partitions, "all", Flush.ACK)
    for partitions in PARTITIONS:
        yield Case(1024, partitions, "all", Flush.INTERVAL)
        yield Case(1024, partitions, "all", Flush.OS, idempotent=True)


def produce(bench: Bench) -> None:
    for case in cases(bench.effort.heavy):
        rounds = bench.effort.rounds if case.requirement != Requirement() else None
        for peer in bench.in_turn(rounds or bench.effort.grid_rounds):
            server = bench.server(peer, case.flush)
            if bench.needs_warming(server, f"produce {case.flush}"):
                _measure(bench, server, case, peer.warm_seconds())
            outcome = _measure(bench, server, case, bench.effort.seconds)
            _record(bench, case, server, outcome)
        bench.say(f"produce: {case.label}")


def _measure(bench: Bench, server: Server, case: Case, seconds: float) -> Outcome:
    with bench.topic(server, case.flush, case.partitions) as topic:
        return run_measured_load(
            server,
            "confluent_produce",
            topic=topic,
            partitions=case.partitions,
            value_size=case.size,
            acks=case.acks,
            idempotent=int(case.idempotent),
            seconds=seconds,
        )


def _record(bench: Bench, case: Case, server: Server, outcome: Outcome) -> None:
    speed = Row("produce", case.label, "MB/s", Better.HIGHER, case.requirement)
    bench.results.record(speed, server.peer.name, outcome["megabytes_per_second"])
    cost = Row("processor, produce", case.label, "s/GB", Better.LOWER)
    bench.results.record(cost, server.peer.name, outcome["processor_seconds_per_gigabyte"])


def produce_raw(bench: Bench) -> None:
    """1 KB messages in ready-made batches: the broker is the limit, not the client."""
    for batch, records in RAW_BATCH_SIZES.items():
        for flush in (Flush.OS, Flush.ACK):
            row = Row(
                "produce, raw", f"1 KB in {batch} batches, flush {flush}", "MB/s", Better.HIGHER
            )
            for peer in bench.in_turn(bench.effort.grid_rounds):
                server = bench.server(peer, flush)
                if bench.needs_warming(server, "produce, raw"):
                    _measure_raw(bench, server, flush, records, peer.warm_seconds())
                outcome = _measure_raw(bench, server, flush, records, bench.effort.seconds)
                bench.results.record(row, peer.name, outcome["megabytes_per_second"])
            bench.say(f"produce, raw: {row.label}")


def _measure_raw(
    bench: Bench, server: Server, flush: Flush, records: int, seconds: float
) -> Outcome:
    with bench.topic(server, flush) as topic:
        return run_measured_load(
            server,
            "raw_produce",
            topic=topic,
            records=records,
            value_size=1024,
            in_flight=max(5, 80 // records),
            seconds=seconds,
        )
