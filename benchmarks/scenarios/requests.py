"""Many small requests: one record of 100 bytes in each Produce request, from bare sockets."""

from typing import NamedTuple

from benchmarks.bench import Bench, Outcome, run_measured_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.results import Better, Requirement, Row
from benchmarks.scenarios.produce import AT_LEAST_KAFKA


class Case(NamedTuple):
    connections: int
    in_flight: int
    flush: Flush
    requirement: Requirement = Requirement()

    @property
    def label(self) -> str:
        plural = "s" if self.connections > 1 else ""
        return (
            f"{self.connections} connection{plural}, {self.in_flight} in flight, flush {self.flush}"
        )


CASES = (
    Case(1, 50, Flush.OS, AT_LEAST_KAFKA),
    Case(1, 1, Flush.OS),
    Case(10, 5, Flush.OS),
    Case(1, 50, Flush.ACK),
)


def _row(case: Case) -> Row:
    return Row("small requests", case.label, "requests/s", Better.HIGHER, case.requirement)


SMALL_REQUESTS = _row(CASES[0])


def requests(bench: Bench) -> None:
    for case in CASES if bench.effort.heavy else CASES[:1]:
        row = _row(case)
        rounds = bench.effort.rounds if case.requirement.ratio_min else bench.effort.grid_rounds
        for peer in bench.in_turn(rounds):
            server = bench.server(peer, case.flush)
            if bench.needs_warming(server, f"small requests {case.flush}"):
                _measure(bench, server, case, peer.warm_seconds())
            outcome = _measure(bench, server, case, bench.effort.seconds)
            bench.results.record(row, peer.name, outcome["requests_per_second"])
        bench.say(f"small requests: {case.label}")


def _measure(bench: Bench, server: Server, case: Case, seconds: float) -> Outcome:
    with bench.topic(server, case.flush) as topic:
        return run_measured_load(
            server,
            "raw_produce",
            topic=topic,
            connections=case.connections,
            in_flight=case.in_flight,
            seconds=seconds,
        )
