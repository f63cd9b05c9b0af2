"""Log lines for changes that may come by the thousand: one line for all with the same cause.

Everything noted in one round of the event loop makes one line, at once. More with the same cause
within `INTERVAL_S` is collected until the interval ends, so that a cause writes at most one line
per interval, however many partitions it concerns.
"""

import logging
from asyncio import AbstractEventLoop
from collections import Counter
from dataclasses import field
from typing import Final

from ottla.protocol.lazy_dataclass import dataclass

INTERVAL_S: Final = 1.0
_DETAILS_SHOWN: Final = 5


@dataclass(slots=True)
class _Tally:
    first: str
    details: Counter[str] = field(default_factory=Counter)

    def text(self, what: str) -> str:
        if self.details.total() == 1:
            return f"{what} of {self.first} ({next(iter(self.details))})"
        details = [f"{detail}: {times}" for detail, times in self.details.most_common()]
        if len(details) > _DETAILS_SHOWN:
            details[_DETAILS_SHOWN:] = ["..."]
        count = self.details.total()
        return f"{what} of {count} partitions ({', '.join(details)}), first {self.first}"


@dataclass(slots=True)
class _Group:
    level: int = logging.INFO
    tallies: dict[str, _Tally] = field(default_factory=dict)
    is_noted: bool = False  # Something was noted since the last line.


class LogSummaries:
    """Belongs to the loop's thread. A group is kept for one interval after its line."""

    def __init__(self, loop: AbstractEventLoop, logger: logging.Logger) -> None:
        self._loop = loop
        self._logger = logger
        self._groups: dict[str, _Group] = {}

    def note(self, cause: str, level: int = logging.INFO) -> None:
        """Note only that it happened."""
        self._group(cause, level)

    def note_partition(
        self, cause: str, what: str, detail: str, partition: str, level: int = logging.INFO
    ) -> None:
        """Note that `what` changed, such as "leader", with the `detail`, such as "1 -> 2"."""
        tallies = self._group(cause, level).tallies
        tally = tallies.get(what)
        if tally is None:
            tally = tallies[what] = _Tally(partition)
        tally.details[detail] += 1

    def _group(self, cause: str, level: int) -> _Group:
        group = self._groups.get(cause)
        if group is None:
            group = self._groups[cause] = _Group()
            self._loop.call_soon(self._write, cause)
        group.is_noted = True
        group.level = max(group.level, level)
        return group

    def _write(self, cause: str) -> None:
        group = self._groups[cause]
        if not group.is_noted:
            del self._groups[cause]
            return
        parts = [tally.text(what) for what, tally in group.tallies.items()]
        text = "; ".join([cause, *parts])
        self._logger.log(group.level, "%s", text, extra={"template": "the cluster changed"})
        self._groups[cause] = _Group()
        self._loop.call_later(INTERVAL_S, self._write, cause)
