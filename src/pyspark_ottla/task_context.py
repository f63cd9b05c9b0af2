"""The task of Spark in which rows are written, and what Spark tells it."""

from pyspark import TaskContext


def current_task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    return context


def local_property(context: TaskContext, name: str) -> str:
    value = context.getLocalProperty(name)
    assert value is not None, f"Spark does not tell {name}"
    return value
