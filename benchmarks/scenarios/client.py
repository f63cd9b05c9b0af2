"""The Python client next to the library it wraps, and brokers inside a test."""

from benchmarks.bench import Bench, run_load
from benchmarks.peers.peer import Flush
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.startup import first_record_seconds

AT_LEAST_NINE_TENTHS = Requirement(value_max=1.11)  # As a share of the bare client's rate.
FIXTURE = Requirement(ratio_min=20.0, value_max=0.3)
BROKERS = 100
NOTHING = Requirement(value_max=0.0)
# A broker takes 430 KB. The resident set of a process moves by 2 MB up and down.
LEFT = {
    "threads": Row("fixture", f"left by {BROKERS} brokers", "threads", Better.LOWER, NOTHING),
    "descriptors": Row("fixture", f"left by {BROKERS} brokers", "files", Better.LOWER, NOTHING),
    "kilobytes": Row(
        "fixture", f"left by {BROKERS} brokers", "KB", Better.LOWER, Requirement(value_max=5_000.0)
    ),
}

KINDS = {
    "produce": ("produce, 100 B, every delivery heard of", AT_LEAST_NINE_TENTHS),
    "produce-async": ("produce with asyncio, 100 B", AT_LEAST_NINE_TENTHS),
    "consume": ("consume one after the other, 100 B", AT_LEAST_NINE_TENTHS),
    "poll": ("consume by 500, 100 B", AT_LEAST_NINE_TENTHS),
}


def facade(bench: Bench) -> None:
    count = 100_000 if bench.effort.heavy else 30_000
    for peer in bench.peers:
        if peer.name != SUBJECT:
            continue
        server = bench.server(peer, Flush.OS)
        for kind, (label, requirement) in KINDS.items():
            row = Row("client", label, "times confluent-kafka's time", Better.LOWER, requirement)
            with bench.topic(server, Flush.OS) as topic:
                outcome = run_load(
                    "client_facade",
                    address=server.address,
                    topic=topic,
                    kind=kind,
                    count=count // 4 if kind == "produce-async" else count,
                    rounds=2 * bench.effort.rounds + 1,
                )
            bench.results.record(row, peer.name, outcome["times_bare"])
            bench.say(f"client: {label}")


def fixture(bench: Bench) -> None:
    """A broker in a test's process; for other peers, a process of its own."""
    later = Row("fixture", "start to first acknowledged record", "s", Better.LOWER, FIXTURE)
    first = Row("fixture", "the same, with the import of the broker", "s", Better.LOWER, FIXTURE)
    for peer in bench.in_turn(bench.effort.rounds):
        if peer.name == SUBJECT:
            outcome = run_load("embedded_start")
            bench.results.record(later, peer.name, outcome["seconds"])
            bench.results.record(first, peer.name, outcome["first_seconds"])
        else:
            seconds = first_record_seconds(bench, peer)
            bench.results.record(later, peer.name, seconds)
            bench.results.record(first, peer.name, seconds)
    bench.say(f"fixture: {later.label}")
    outcome = run_load("embedded_lives", count=BROKERS)
    for name, row in LEFT.items():
        bench.results.record(row, SUBJECT, outcome[name])
    bench.say(f"fixture: left by {BROKERS} brokers")
