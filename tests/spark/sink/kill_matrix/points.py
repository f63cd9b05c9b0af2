"""The points at which a process can die; `faults` passes each of them."""

POINTS = (
    "task.before_opening",
    "task.after_opening",
    "task.after_writing",
    "task.after_preparing",
    "driver.before_claim",
    "driver.before_decision",
    "driver.in_decision",
    "driver.after_decision",
    "driver.in_commits",
    "driver.after_commits",
    "driver.before_spark_commits",
)
TASK_POINTS = tuple(point for point in POINTS if point.startswith("task."))
