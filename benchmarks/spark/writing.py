"""How fast tables are written to topics.

`ottla` writes exactly once, in transactions with a decision per batch; `kafka` writes at least
once.
"""

import itertools
from collections.abc import Iterator
from typing import Any

from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.spark.run import PARTITIONS, Run, timed

AT_LEAST = Requirement(ratio_min=1.0)
KEYS = 5_000


def measure_writing(run: Run) -> None:
    for value_size, rows in run.size.written_rows.items():
        label = f"{value_size} B, ottla exactly once, kafka at least once"
        row = Row("rows written", label, "M rows/s", Better.HIGHER, AT_LEAST)
        columns = (f"string(id % {KEYS}) key", f"rpad(string(id), {value_size}, 'x') value")
        table = run.spark.range(0, rows, 1, PARTITIONS).selectExpr(*columns).cache()
        table.count()
        batch_ids = itertools.count()
        for index in range(run.size.rounds + 1):
            for sink in run.in_turn(index):
                with run.topic() as topic:
                    _, seconds = timed(_writer(run, table, sink, topic, batch_ids).save)
                if index:
                    run.results.record(row, sink, rows / seconds / 1e6)
        table.unpersist()
        run.say(label)


def _writer(run: Run, table: Any, sink: str, topic: str, batch_ids: Iterator[int]) -> Any:
    writer = table.write.format(sink).mode("append").option("topic", topic)
    writer = writer.option("kafka.bootstrap.servers", run.address)
    if sink == SUBJECT:
        writer = writer.option("delivery", "exactly_once").option("sinkId", f"bench-{id(table)}")
        writer = writer.option("batchId", next(batch_ids))
    return writer
