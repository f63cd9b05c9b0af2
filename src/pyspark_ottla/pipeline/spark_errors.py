"""Spark's errors in one sentence, without the stack traces of two languages."""

import re
from typing import NamedTuple

_LINE = re.compile(r"[(;] ?line (\d+)[, ]+pos (\d+)\)?")
_ERROR_CLASS = re.compile(r"^\[[A-Z0-9_.]+\] ")
_SQL_STATE = re.compile(r" ?SQLSTATE: \w+")
# Last line of a Python process: `package.module.SomeError: what`.
_PYTHON_ERROR = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*): (.+)$", re.MULTILINE)
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+)")
_CHARACTERS_MAX = 600
# Spark does not say which of the reasons it was.
NO_PYTHON = "Python worker failed to connect back"
_NO_PYTHON_MEANS = (
    f"{NO_PYTHON} within ten seconds: the machine is too busy, or the Python there"
    " (PYSPARK_PYTHON) lacks a package; Spark's log has what it said"
)


# Errors that a restarted query survives, without repeating what the failed one did. A Python
# process that Spark starts has ten seconds to connect, which is not enough on a very busy machine.
# The other was seen once, with plans that otherwise serialize fine.
_MAY_PASS = (NO_PYTHON, "Task not serializable")


def may_pass(error: BaseException) -> bool:
    """Whether a retry may succeed."""
    return any(phrase in str(error) for phrase in _MAY_PASS)


class SparkProblem(NamedTuple):
    message: str
    sql_line: int | None  # In the text that Spark was given, from 1.


def describe_error(error: BaseException) -> SparkProblem:
    text = str(error)
    if NO_PYTHON in text:
        return SparkProblem(_NO_PYTHON_MEANS, None)
    raised = _RAISED.search(text)
    if raised:
        return SparkProblem(_plain(raised[1]), None)
    if "Traceback (most recent call last)" in text:
        after = text.rpartition("Traceback (most recent call last)")[2]
        messages = [match[2] for match in _PYTHON_ERROR.finditer(after)]
        if messages:
            return SparkProblem(_plain(messages[0]), None)
    line = _LINE.search(text)
    message, reason = _plain(text), _plain(str(_root_of(error)))
    if reason not in " ".join(text.split()):
        message += f": {reason}"
    return SparkProblem(message, int(line[1]) if line else None)


def _root_of(error: BaseException) -> BaseException:
    """Java's root cause, which PySpark keeps but does not show."""
    while (cause := getattr(error, "_cause", None)) is not None:
        error = cause
    return error


def _plain(text: str) -> str:
    """The first paragraph, without codes."""
    head = re.split(r"\n\s*\n|\n\s*===? |\n'|\nJVM stacktrace", text.strip(), maxsplit=1)[0]
    head = _ERROR_CLASS.sub("", _SQL_STATE.sub("", _LINE.sub("", head)))
    return " ".join(head.split())[:_CHARACTERS_MAX].rstrip(" ;.")
