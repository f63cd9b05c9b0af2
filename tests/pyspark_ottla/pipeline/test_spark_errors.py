import pytest

from pyspark_ottla.pipeline.spark_errors import describe_error

UNRESOLVED = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `custmer` \
cannot be resolved. Did you mean one of the following? [`customer`]. SQLSTATE: 42703; line 2 pos 7;
'Project ['custmer]
+- SubqueryAlias orders
"""
SYNTAX = """\

[PARSE_SYNTAX_ERROR] Syntax error at or near 'fram'. SQLSTATE: 42601 (line 3, pos 0)

== SQL ==
select 1
"""
PYTHON = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted: org.apache.spark.api.python.\
PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
pyspark_ottla.value_formats.BadValue: orders-0: the value at offset 3 is not json

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException
java.lang.IllegalStateException: after
"""
NO_PYTHON = """\
[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XX
\tat org.apache
"""
RAISED = """\
[STREAM_FAILED] Query terminated: [USER_RAISED_EXCEPTION] orders: a row is bad: {"a":1} \
SQLSTATE: P0001
\tat org.apache
"""


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (
            UNRESOLVED,
            "A column, variable, or function parameter with name `custmer` cannot be resolved."
            " Did you mean one of the following? [`customer`]",
            2,
        ),
        (SYNTAX, "Syntax error at or near 'fram'", 3),
        (PYTHON, "orders-0: the value at offset 3 is not json", None),
        (RAISED, 'orders: a row is bad: {"a":1}', None),
        (
            NO_PYTHON,
            "Python worker failed to connect back within ten seconds: the machine is too busy, or"
            " the Python there (PYSPARK_PYTHON) lacks a package; Spark's log has what it said",
            None,
        ),
        ("something else", "something else", None),
    ],
)
def test_an_error_in_one_sentence(text: str, message: str, line: int | None) -> None:
    assert describe_error(Exception(text)) == (message, line)


class CapturedError(Exception):
    """As PySpark has them."""

    def __init__(self, text: str, cause: "CapturedError | None" = None) -> None:
        super().__init__(text)
        self._cause = cause


def test_the_cause_is_told_if_spark_does_not_tell_it() -> None:
    cause = CapturedError("java.lang.IllegalStateException: Illegal size 3")
    hidden = CapturedError("Task not serializable\n=== Query ===", CapturedError("", cause))
    assert describe_error(hidden).message == (
        "Task not serializable: java.lang.IllegalStateException: Illegal size 3"
    )
    shown = CapturedError("Job aborted: java.lang.IllegalStateException: Illegal size 3", cause)
    assert describe_error(shown).message == str(shown)
