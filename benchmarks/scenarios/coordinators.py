"""What coordinators do: commits, rebalances, large groups and transactions.

Kafka's own topics are never flushed on acknowledgement, so that flush os compares like with like;
with flush ack there is only Ottla, whose default that is.
"""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.bench import Bench, Outcome, run_load
from benchmarks.peers.peer import Flush, Peer, Server
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.produce import AT_LEAST_KAFKA

FLUSHES = (Flush.OS, Flush.ACK)
GROUP_PARTITIONS = 900
GROUP_MEMBERS = 10
MANY_MEMBERS = 1_000


class Case(NamedTuple):
    """One load, and which of the values that it reports is shown."""

    scenario: str
    label: str
    load: str
    value: str
    unit: str
    better: Better
    requirement: Requirement = Requirement()
    arguments: tuple[tuple[str, object], ...] = ()
    partitions: int = 1
    timed: bool = True  # Whether the load runs for as long as it is told.

    def row(self, flush: Flush) -> Row:
        requirement = self.requirement if flush is Flush.OS else Requirement()
        label = f"{self.label}, flush {flush}"
        return Row(self.scenario, label, self.unit, self.better, requirement)


def _commits(label: str, load: str, requirement: Requirement, **arguments: object) -> Case:
    return Case(
        "offset commits",
        label,
        load,
        "commits_per_second",
        "commits/s",
        Better.HIGHER,
        requirement,
        tuple(arguments.items()),
    )


def _rebalance(label: str, requirement: Requirement, **arguments: object) -> Case:
    return Case(
        f"{GROUP_MEMBERS} consumers join on {GROUP_PARTITIONS} partitions until stable",
        label,
        "rebalance",
        "seconds",
        "s",
        Better.LOWER,
        requirement,
        (("members", GROUP_MEMBERS), ("partitions", GROUP_PARTITIONS), *arguments.items()),
        partitions=GROUP_PARTITIONS,
        timed=False,
    )


def _transactions(records: int) -> Case:
    plural = "s" if records > 1 else ""
    return Case(
        "transactions",
        f"{records:,} record{plural} of 100 B each",
        "transactions",
        "transactions_per_second",
        "transactions/s",
        Better.HIGHER,
        AT_LEAST_KAFKA,
        (("records", records),),
    )


COMMITS = (
    _commits("1 connection, 50 in flight", "raw_commit", AT_LEAST_KAFKA),
    _commits("1 connection, 1 in flight", "raw_commit", Requirement(), in_flight=1),
    _commits("confluent-kafka, synchronous", "confluent_commit", AT_LEAST_KAFKA),
)
REBALANCES = (
    _rebalance("classic", AT_LEAST_KAFKA, protocol="classic"),
    _rebalance("classic, heartbeat 100 ms", Requirement(), protocol="classic", heartbeat_ms=100),
    _rebalance("consumer", AT_LEAST_KAFKA, protocol="consumer"),
)
TRANSACTIONS = (_transactions(1), _transactions(1_000))


def commits(bench: Bench) -> None:
    _measure_all(bench, COMMITS)


def rebalance(bench: Bench) -> None:
    """Time until every partition is with one member and every member polled since."""
    _measure_all(bench, REBALANCES)


def many_members(bench: Bench) -> None:
    """Time until each of many members has its partition."""
    members = MANY_MEMBERS if bench.effort.heavy else MANY_MEMBERS // 10
    case = Case(
        "many members",
        f"{members:,} join a consumer group on {members:,} partitions until all are assigned",
        "many_members",
        "seconds",
        "s",
        Better.LOWER,
        arguments=(("members", members), ("partitions", members)),
        partitions=members,
        timed=False,
    )
    _measure_all(bench, (case,))


def transactions(bench: Bench) -> None:
    _measure_all(bench, TRANSACTIONS)


def in_turn(bench: Bench, flush: Flush, rounds: int) -> Iterator[Peer]:
    """As the bench says, without those that cannot flush their own topics on acknowledgement."""
    for peer in bench.in_turn(rounds):
        if flush is not Flush.ACK or peer.name == SUBJECT:
            yield peer


def _measure_all(bench: Bench, cases: tuple[Case, ...]) -> None:
    for case in cases:
        for flush in FLUSHES:
            _measure(bench, case, flush)


def _measure(bench: Bench, case: Case, flush: Flush) -> None:
    row = case.row(flush)
    asked = row.requirement != Requirement()
    rounds = bench.effort.rounds if asked else bench.effort.grid_rounds
    for peer in in_turn(bench, flush, rounds):
        server = bench.server(peer, flush)
        if bench.needs_warming(server, f"{case.scenario} {case.load}"):
            _run(bench, server, case, flush, peer.warm_seconds())
        outcome = _run(bench, server, case, flush, bench.effort.seconds)
        bench.results.record(row, peer.name, outcome[case.value])
    bench.say(f"{case.scenario}: {row.label}")


def _run(bench: Bench, server: Server, case: Case, flush: Flush, seconds: float) -> Outcome:
    arguments = dict(case.arguments)
    if case.timed:
        arguments["seconds"] = seconds
    with bench.topic(server, flush, case.partitions) as topic:
        return run_load(case.load, address=server.address, topic=topic, **arguments)
