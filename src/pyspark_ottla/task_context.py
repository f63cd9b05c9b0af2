"""The Spark task that writes rows, and what Spark says about it."""

from pyspark import TaskContext


def current_task() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    return context


def local_property(context: TaskContext, name: str) -> str:
    value = context.getLocalProperty(name)
    assert value is not None, f"Spark does not tell {name}"
    return value
