"""Committed offsets never move back, and a group misses no record before them.

A commit without an answer may come to be later, even after one that was sent later; then, and only
then, the offset may be lower than one that was confirmed.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.events import Event, OffsetCommitted, OffsetFetched, Processed, name_of
from ottla.testing.simulator.violation import Violation


@dataclass(slots=True)
class _Place:
    """A partition, as a group sees it."""

    confirmed: list[tuple[float, int]] = field(default_factory=list)  # When, and what.
    undecided: set[int] = field(default_factory=set)
    highest: int = 0
    processed: set[int] = field(default_factory=set)


def _new_places() -> defaultdict[tuple[str, TopicPartition], _Place]:
    return defaultdict(_Place)


@dataclass(slots=True)
class CommittedOffsets(Checker):
    places: defaultdict[tuple[str, TopicPartition], _Place] = field(default_factory=_new_places)

    def on(self, event: Event) -> None:
        if isinstance(event, OffsetCommitted):
            place = self.places[event.group, event.partition]
            if event.known:
                place.confirmed.append((event.at, event.offset))
                place.highest = max(place.highest, event.offset)
            else:
                place.undecided.add(event.offset)
        elif isinstance(event, OffsetFetched):
            self._check(event)
        elif isinstance(event, Processed):
            place = self.places[event.group, event.partition]
            place.processed.add(event.record.offset)

    def _check(self, event: OffsetFetched) -> None:
        place = self.places[event.group, event.partition]
        before = [offset for at, offset in place.confirmed if at <= event.asked_at]
        if event.offset < max(before, default=-1) and event.offset not in place.undecided:
            raise Violation(
                f"{event.group} committed {max(before)} of {event.partition}, "
                f"and {event.offset} was fetched after that"
            )

    def check_end(self, final: FinalState) -> None:
        for (group, partition), place in self.places.items():
            for offset, value in final.records.get(partition, ()):
                if offset < place.highest and offset not in place.processed:
                    raise Violation(
                        f"{group} committed {place.highest} of {partition}, "
                        f"but nobody in it processed {name_of(value)} at {offset}"
                    )
