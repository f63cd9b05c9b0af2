"""How fast topics are read as tables, and what a filter for recent records saves."""

import statistics
from typing import Any

from pyspark.sql import functions as f

from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.spark.run import PARTITIONS, Run, timed

AT_LEAST = Requirement(ratio_min=1.5)
LAST_SHARE = 0.01
WARM_COUNTS = 100  # Java needs this many to compile Spark's planner, on the measured cores.
COUNTS = 5  # Per round; one count of all takes longer than all of these.
TIMES_AS_FAST = 30
SHARE_OF_TIME_MAX = Requirement(value_max=100 / TIMES_AS_FAST)


def measure_reading(run: Run) -> None:
    for value_size, rows in run.size.read_rows.items():
        with run.filled_topic(rows, value_size) as topic:
            _measure_speed(run, topic, rows, value_size)


def measure_filter(run: Run) -> None:
    """Reads the last 1 % by timestamp, and all, in turn, in a warmed-up session."""
    rows = run.size.filter_rows
    last = int(rows * LAST_SHARE)
    what = f"of {rows // 1_000_000} million rows"
    share = Row("filter", f"time for the last 1 % {what}", "% of all", Better.LOWER)
    asked = share._replace(requirement=SHARE_OF_TIME_MAX)
    filtered = Row("filter", f"count of the last 1 % {what}", "ms", Better.LOWER)
    everything = Row("filter", f"count {what}", "ms", Better.LOWER)
    with run.filled_topic(rows, 100) as topic:
        for _ in range(WARM_COUNTS):
            _count_last(run, SUBJECT, topic, rows, last)
        for index in range(run.size.rounds + 1):
            for source in run.in_turn(index) if index <= 1 else [SUBJECT]:
                counts = COUNTS if source == SUBJECT else 1
                times = [_count_last(run, source, topic, rows, last) for _ in range(counts)]
                seconds = statistics.median(times)
                _, all_seconds = timed(run.read(source, topic).count)
                if index:
                    run.results.record(filtered, source, seconds * 1000)
                    run.results.record(everything, source, all_seconds * 1000)
                    run.results.record(asked, source, 100 * seconds / all_seconds)
    run.say("filter")


def _count_last(run: Run, source: str, topic: str, rows: int, last: int) -> float:
    """Seconds."""
    since = run.first_ms + (rows - last) // PARTITIONS
    later = run.read(source, topic).where(f"timestamp >= timestamp_millis({since})")
    found, seconds = timed(later.count)
    assert found == last, f"{source} found {found} of {last} rows"
    return seconds


def _measure_speed(run: Run, topic: str, rows: int, value_size: int) -> None:
    for name, query in (("count", _count), ("groupBy(key).count", _group)):
        label = f"{name}, {value_size} B"
        row = Row("rows read", label, "M rows/s", Better.HIGHER, AT_LEAST)
        for index in range(run.size.rounds + 1):
            for source in run.in_turn(index):
                table = run.read(source, topic)
                found, seconds = timed(lambda query=query, table=table: query(table))
                assert found == rows, f"{source} found {found} of {rows} rows"
                if index:
                    run.results.record(row, source, rows / seconds / 1e6)
        run.say(label)


def _count(table: Any) -> int:
    found: int = table.count()
    return found


def _group(table: Any) -> int:
    found: int = table.groupBy("key").count().agg(f.sum("count")).first()[0]
    return found
