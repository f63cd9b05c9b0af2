"""What a check has found: how bad it is, what is wrong, and which command repairs it."""

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple


class Severity(enum.IntEnum):
    NOTE = 0  # Worth knowing.
    WARNING = 1  # Nothing is lost yet; the next failure may hurt.
    CRITICAL = 2  # Records cannot be written or read, or are in danger now.


class Finding(NamedTuple):
    severity: Severity
    subject: str
    problem: str
    repair: str

    def document(self) -> dict[str, Any]:
        return {**self._asdict(), "severity": self.severity.name.lower()}


def note(subject: str, problem: str, repair: str) -> Finding:
    return Finding(Severity.NOTE, subject, problem, repair)


def warning(subject: str, problem: str, repair: str) -> Finding:
    return Finding(Severity.WARNING, subject, problem, repair)


def critical(subject: str, problem: str, repair: str) -> Finding:
    return Finding(Severity.CRITICAL, subject, problem, repair)


def numbered(count: int, singular: str, plural: str) -> str:
    """1 partition has, 2 partitions have."""
    return f"{count} {singular if count == 1 else plural}"


def some(names: Sequence[object], shown: int = 3) -> str:
    """A list that stays short however long it is."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(map(str, names[:shown])) + more
