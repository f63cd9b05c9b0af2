"""Produce latency at 5,000 messages a second, acks=all."""

from benchmarks.bench import Bench, Outcome, run_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.results import Better, Requirement, Row

RATE = 5_000
CASES = (("confluent", Flush.OS), ("raw", Flush.OS), ("confluent", Flush.ACK))
NO_WORSE = Requirement(ratio_min=1.0)
FIGURES = {"p50": "p50_ms", "p99": "p99_ms", "p99.9": "p999_ms"}


def latency(bench: Bench) -> None:
    """Raw only at flush os.

    A peer without group commit cannot keep up with one sync per message at this rate, and the
    latency of an overloaded queue means nothing.
    """
    for client, flush in CASES if bench.effort.heavy else CASES[:1]:
        _latency_case(bench, client, flush)


def _latency_case(bench: Bench, client: str, flush: Flush) -> None:
    required = client == "confluent" and flush is Flush.OS
    effort = bench.effort
    for peer in bench.in_turn(effort.rounds if required else effort.grid_rounds):
        server = bench.server(peer, flush)
        if bench.needs_warming(server, f"latency {client} {flush}"):
            _measure(bench, server, client, flush, peer.warm_seconds())
        outcome = _measure(bench, server, client, flush, effort.seconds * 2)
        for name, key in FIGURES.items():
            requirement = NO_WORSE if required and name == "p99" else Requirement()
            label = f"{name}, {client} client, flush {flush}"
            row = Row("latency at 5,000 msg/s", label, "ms", Better.LOWER, requirement)
            bench.results.record(row, peer.name, outcome[key])
    bench.say(f"latency: {client} client, flush {flush}")


def _measure(bench: Bench, server: Server, client: str, flush: Flush, seconds: float) -> Outcome:
    with bench.topic(server, flush) as topic:
        return run_load(
            "latency",
            address=server.address,
            topic=topic,
            client=client,
            rate=RATE,
            seconds=seconds,
        )
