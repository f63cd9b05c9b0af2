"""Consume throughput from the page cache: what was just written is read again."""

from benchmarks.bench import Bench, Outcome, run_load, run_measured_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.results import Better, Requirement, Row
from benchmarks.scenarios.produce import AT_LEAST_KAFKA, PARTITIONS, SIZES

TOPIC_BYTES = {100: 150_000_000, 1024: 600_000_000, 16_384: 1_000_000_000}
RAW_BYTES = 600_000_000
RAW_BATCH_RECORDS = 64


def consume(bench: Bench) -> None:
    sizes = SIZES if bench.effort.heavy else (1024,)
    for size in sizes:
        for partitions in PARTITIONS if bench.effort.heavy else (1,):
            _consume_case(bench, size, partitions)


def _consume_case(bench: Bench, size: int, partitions: int) -> None:
    required = (size, partitions) == (1024, 1)
    unit = f"{size} B" if size < 1024 else f"{size // 1024} KB"
    label = f"{unit}, {partitions} partition{'s' if partitions > 1 else ''}"
    requirement = AT_LEAST_KAFKA if required else Requirement()
    speed = Row("consume", label, "MB/s", Better.HIGHER, requirement)
    cost = Row("processor, consume", label, "s/GB", Better.LOWER)
    effort = bench.effort
    for peer in bench.in_turn(effort.rounds if required else effort.grid_rounds):
        server = bench.server(peer, Flush.OS)
        turns = 1
        if bench.needs_warming(server, "consume"):
            turns = 1 + round(peer.warm_seconds() / 2)
        outcome = _measure(bench, server, size, partitions, turns)
        bench.results.record(speed, peer.name, outcome["megabytes_per_second"])
        bench.results.record(cost, peer.name, outcome["processor_seconds_per_gigabyte"])
    bench.say(f"consume: {label}")


def _measure(bench: Bench, server: Server, size: int, partitions: int, turns: int) -> Outcome:
    """Fills a topic and reads it `turns` times; only the last one counts."""
    total = int(TOPIC_BYTES[size] * min(1.0, bench.effort.seconds / 3))
    with bench.topic(server, Flush.OS, partitions) as topic:
        common = {"topic": topic, "partitions": partitions}
        filled = run_load(
            "confluent_produce",
            address=server.address,
            value_size=size,
            count=total // size,
            **common,
        )
        for _ in range(turns):
            outcome = run_measured_load(
                server, "confluent_consume", count=int(filled["messages"]), **common
            )
    return outcome


def consume_raw(bench: Bench) -> None:
    """Fetch requests of 1 MB over one bare socket."""
    row = Row("consume, raw", "1 KB in 64 KB batches, 1 partition", "MB/s", Better.HIGHER)
    for peer in bench.in_turn(bench.effort.grid_rounds):
        server = bench.server(peer, Flush.OS)
        with bench.topic(server, Flush.OS) as topic:
            end_offset = _fill_raw(server, topic)
            fetch = {"topic": topic, "end_offset": end_offset}
            if bench.needs_warming(server, "consume, raw"):
                run_load("raw_fetch", address=server.address, seconds=peer.warm_seconds(), **fetch)
            outcome = run_measured_load(server, "raw_fetch", seconds=bench.effort.seconds, **fetch)
        bench.results.record(row, peer.name, outcome["megabytes_per_second"])
    bench.say(f"consume, raw: {row.label}")


def _fill_raw(server: Server, topic: str) -> int:
    requests = RAW_BYTES // (RAW_BATCH_RECORDS * 1024)
    run_load(
        "raw_produce",
        address=server.address,
        topic=topic,
        records=RAW_BATCH_RECORDS,
        value_size=1024,
        in_flight=5,
        warm_seconds=0,
        seconds=60,
        count=requests,
    )
    return requests * RAW_BATCH_RECORDS
