"""The Spark task that writes rows, and what Spark says about it."""

from typing import NamedTuple

from pyspark import TaskContext


class StreamBatch(NamedTuple):
    """The micro-batch that a task belongs to."""

    id: int
    run_id: str
    query_id: str


def current_task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    return context


def current_batch() -> StreamBatch:
    return StreamBatch(
        int(_local_property("streaming.sql.batchId")),
        _local_property("spark.jobGroup.id"),
        _local_property("sql.streaming.queryId"),
    )


def _local_property(name: str) -> str:
    value = current_task().getLocalProperty(name)
    assert value is not None, f"Spark does not tell {name}"
    return value
