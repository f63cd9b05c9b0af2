"""A partition has one owner in a group at a time.

A member owns a partition from the moment it is told so until, at least, its last request that the
coordinator accepted with that partition. What a member believes after that, cut off and fenced
without knowing, does not count.
"""

from dataclasses import dataclass, field

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker
from ottla.testing.simulator.events import Confirmed, Event, Owned
from ottla.testing.simulator.violation import Violation


@dataclass(slots=True)
class _Ownership:
    member: str
    start: float
    end: float


@dataclass(slots=True)
class OneOwner(Checker):
    owners: dict[tuple[str, TopicPartition], list[_Ownership]] = field(default_factory=dict)

    def on(self, event: Event) -> None:
        if isinstance(event, Owned):
            owners = self.owners.setdefault((event.group, event.partition), [])
            owners.append(_Ownership(event.member, event.at, event.at))
        elif isinstance(event, Confirmed):
            self._confirm(event)

    def _confirm(self, event: Confirmed) -> None:
        owners = self.owners[event.group, event.partition]
        own = next(each for each in reversed(owners) if each.member == event.member)
        if event.sent_at < own.start:
            return
        own.end = max(own.end, event.sent_at)
        for other in owners:
            if other.member != own.member and other.start < own.end and own.start < other.end:
                raise Violation(
                    f"{event.partition} is owned in {event.group} by {own.member} from "
                    f"{own.start:.3f} to {own.end:.3f}, and by {other.member} from "
                    f"{other.start:.3f} to {other.end:.3f}"
                )
