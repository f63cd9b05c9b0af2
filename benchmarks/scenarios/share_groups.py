"""Deliveries through a share group, next to filling the same topic."""

from benchmarks.bench import Bench, LoadFailed, run_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.results import SUBJECT, Better, Row
from benchmarks.scenarios.coordinators import flushes, in_turn

RECORDS = 200_000
VALUE_SIZE = 100


def share_groups(bench: Bench) -> None:
    """One consumer that accepts every record; peers without share groups are left out."""
    records = RECORDS if bench.effort.heavy else RECORDS // 10
    for flush in flushes(bench):
        label = f"1 consumer, {VALUE_SIZE} B, 1 partition, flush {flush}"
        row = Row("share group", label, "deliveries/s", Better.HIGHER)
        for peer in in_turn(bench, flush, bench.effort.grid_rounds):
            server = bench.server(peer, flush)
            try:
                if bench.needs_warming(server, "share group"):
                    _deliveries_per_second(bench, server, flush, records)
                value = _deliveries_per_second(bench, server, flush, records)
            except LoadFailed as failure:
                if peer.name == SUBJECT:
                    raise
                bench.say(f"share group: {peer.name} is left out: {failure}")
                continue
            bench.results.record(row, peer.name, value)
        bench.say(f"share group: {label}")


def _deliveries_per_second(bench: Bench, server: Server, flush: Flush, records: int) -> float:
    with bench.topic(server, flush) as topic:
        common = {"address": server.address, "topic": topic}
        filled = run_load("confluent_produce", value_size=VALUE_SIZE, count=records, **common)
        outcome = run_load("share_consume", count=int(filled["messages"]), **common)
        return outcome["deliveries_per_second"]
