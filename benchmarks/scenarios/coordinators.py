"""What coordinators do: commits, rebalances, large groups and transactions.

Kafka never flushes its internal topics on acknowledgement, so flush os compares like with like;
with flush ack, its default, only Ottla is measured.
"""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.bench import Bench, Outcome, run_load
from benchmarks.peers.peer import Flush, Peer, Server
from benchmarks.results import Better, Requirement, Row
from benchmarks.scenarios.produce import AT_LEAST_KAFKA

FLUSHES = (Flush.OS, Flush.ACK)
GROUP_PARTITIONS = 900
GROUP_MEMBERS = 10
MANY_MEMBERS = 1_000


class Case(NamedTuple):
    """One load, and a row for each reported value that is shown."""

    scenario: str
    load: str
    shown: tuple[tuple[str, str], ...]  # The label of a row, and the value in it.
    unit: str
    better: Better
    requirement: Requirement = Requirement()
    arguments: tuple[tuple[str, object], ...] = ()
    partitions: int = 1
    timed: bool = True  # Whether the load runs for a given time.

    def row(self, label: str, flush: Flush) -> Row:
        requirement = self.requirement if flush is Flush.OS else Requirement()
        return Row(self.scenario, f"{label}, flush {flush}", self.unit, self.better, requirement)


def _commits(label: str, load: str, requirement: Requirement, **arguments: object) -> Case:
    return Case(
        "offset commits",
        load,
        ((label, "commits_per_second"),),
        "commits/s",
        Better.HIGHER,
        requirement,
        tuple(arguments.items()),
    )


def _rebalance(protocol: str, heartbeat: str, **arguments: object) -> Case:
    shown = [(f"{protocol}, one joins every 50 ms{heartbeat}", "join_seconds")]
    if "times" in arguments:
        shown.append((f"{protocol}, another joins{heartbeat}", "one_more_seconds"))
        shown.append((f"{protocol}, one leaves{heartbeat}", "one_less_seconds"))
    common = {"protocol": protocol, "members": GROUP_MEMBERS, "partitions": GROUP_PARTITIONS}
    return Case(
        f"{GROUP_MEMBERS} consumers on {GROUP_PARTITIONS} partitions until stable",
        "rebalance",
        tuple(shown),
        "s",
        Better.LOWER,
        AT_LEAST_KAFKA,
        tuple({**common, **arguments}.items()),
        partitions=GROUP_PARTITIONS,
        timed=False,
    )


def _many_members(protocol: str, load: str, members: int) -> Case:
    label = f"{members:,} join a {protocol} group on {members:,} partitions until all are assigned"
    return Case(
        "many members",
        load,
        ((label, "seconds"),),
        "s",
        Better.LOWER,
        AT_LEAST_KAFKA,
        (("members", members), ("partitions", members)),
        partitions=members,
        timed=False,
    )


def _transactions(records: int) -> Case:
    plural = "s" if records > 1 else ""
    return Case(
        "transactions",
        "transactions",
        ((f"{records:,} record{plural} of 100 B each", "transactions_per_second"),),
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
# Members of classic groups choose their heartbeat interval, consumer groups are given one.
REBALANCES = (
    _rebalance("classic", ", heartbeat 100 ms", heartbeat_ms=100, times=10, quiet_seconds=0.3),
    _rebalance("consumer", ""),
    _rebalance("consumer", ", heartbeat 500 ms", heartbeat_ms=500, times=3, quiet_seconds=1.5),
)
TRANSACTIONS = (_transactions(1), _transactions(1_000))


def commits(bench: Bench) -> None:
    _measure_all(bench, COMMITS)


def rebalance(bench: Bench) -> None:
    """Time until every partition is with one member and every member polled since.

    Members join one by one; classic groups have the same initial delay on every broker.
    """
    _measure_all(bench, REBALANCES)


def many_members(bench: Bench) -> None:
    """Time until each of many members has its partition."""
    members = MANY_MEMBERS if bench.effort.heavy else MANY_MEMBERS // 10
    cases = (
        _many_members("classic", "many_classic_members", members),
        _many_members("consumer", "many_members", members),
    )
    _measure_all(bench, cases)


def transactions(bench: Bench) -> None:
    _measure_all(bench, TRANSACTIONS)


def in_turn(bench: Bench, flush: Flush, rounds: int) -> Iterator[Peer]:
    """The bench's peers, without those that cannot flush internal topics on acknowledgement."""
    for peer in bench.in_turn(rounds):
        if flush is not Flush.ACK or not peer.shares_server():
            yield peer


def _measure_all(bench: Bench, cases: tuple[Case, ...]) -> None:
    for case in cases:
        for flush in flushes(bench):
            _measure(bench, case, flush)


def flushes(bench: Bench) -> tuple[Flush, ...]:
    return FLUSHES if bench.effort.heavy else FLUSHES[:1]


def _measure(bench: Bench, case: Case, flush: Flush) -> None:
    rows = [(case.row(label, flush), value) for label, value in case.shown]
    asked = rows[0][0].requirement != Requirement()
    rounds = bench.effort.rounds if asked else bench.effort.grid_rounds
    for peer in in_turn(bench, flush, rounds):
        server = bench.server(peer, flush)
        if bench.needs_warming(server, f"{case.scenario} {case.load}"):
            _run(bench, server, case, flush, peer.warm_seconds())
        outcome = _run(bench, server, case, flush, bench.effort.seconds)
        for row, value in rows:
            bench.results.record(row, peer.name, outcome[value])
    for row, _ in rows:
        bench.say(f"{case.scenario}: {row.label}")


def _run(bench: Bench, server: Server, case: Case, flush: Flush, seconds: float) -> Outcome:
    arguments = dict(case.arguments)
    if case.timed:
        arguments["seconds"] = seconds
    with bench.topic(server, flush, case.partitions) as topic:
        return run_load(case.load, address=server.address, topic=topic, **arguments)
