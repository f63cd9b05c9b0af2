"""What a check has found: how bad it is, what is wrong, and which command repairs it."""

import enum
from functools import partial
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


note = partial(Finding, Severity.NOTE)
warning = partial(Finding, Severity.WARNING)
critical = partial(Finding, Severity.CRITICAL)


def numbered(count: int, singular: str, plural: str) -> str:
    """1 partition has, 2 partitions have."""
    return f"{count} {singular if count == 1 else plural}"
