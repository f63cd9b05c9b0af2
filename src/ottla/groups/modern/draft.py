"""A group as an operation would leave it.

An operation writes records one after the other and looks at their effect on the group: every record
is replayed at once, with the same code that will replay it into the group once it has been
appended, but into a copy layered over the group. A heartbeat that changes nothing makes no copy.
"""

from collections.abc import Iterable
from typing import Generic, Protocol, Self, TypeVar

from ottla.groups.record import Record


class Replayed(Protocol):
    """A group that only replay changes."""

    def drafted(self) -> Self: ...

    def replay(self, record: Record) -> None: ...


G = TypeVar("G", bound=Replayed)


class GroupDraft(Generic[G]):
    def __init__(self, group: G, records: Iterable[Record] = ()) -> None:
        """`records` belong to other groups, must come first, and are not replayed."""
        self.group = group
        self.records: list[Record] = list(records)
        self._drafted = False

    def write(self, *records: Record) -> None:
        if not self._drafted:
            self.group = self.group.drafted()
            self._drafted = True
        for record in records:
            self.records.append(record)
            self.group.replay(record)
