"""Committed offsets never move back, and a group misses no record before them.

A commit without a response may take effect later, even after one that was sent later; only then may
the offset be lower than a confirmed one.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.events import Event, OffsetCommitted, OffsetFetched, Processed, name_of
from ottla.testing.simulator.violation import Violation


@dataclass(slots=True)
class _GroupOffsets:
    """What a group has committed and processed in a partition."""

    confirmed: list[tuple[float, int]] = field(default_factory=list)  # When, and what.
    undecided: set[int] = field(default_factory=set)
    highest: int = 0
    processed: set[int] = field(default_factory=set)


@dataclass(slots=True)
class CommittedOffsets(Checker):
    offsets: defaultdict[tuple[str, TopicPartition], _GroupOffsets] = field(
        default_factory=lambda: defaultdict(_GroupOffsets)
    )

    def on(self, event: Event) -> None:
        if isinstance(event, OffsetCommitted):
            offsets = self.offsets[event.group, event.partition]
            if event.known:
                offsets.confirmed.append((event.at, event.offset))
                offsets.highest = max(offsets.highest, event.offset)
            else:
                offsets.undecided.add(event.offset)
        elif isinstance(event, OffsetFetched):
            self._check(event)
        elif isinstance(event, Processed):
            offsets = self.offsets[event.group, event.partition]
            offsets.processed.add(event.record.offset)

    def _check(self, event: OffsetFetched) -> None:
        offsets = self.offsets[event.group, event.partition]
        before = [offset for at, offset in offsets.confirmed if at <= event.asked_at]
        if event.offset < max(before, default=-1) and event.offset not in offsets.undecided:
            raise Violation(
                f"{event.group} committed {max(before)} of {event.partition}, "
                f"and {event.offset} was fetched after that"
            )

    def check_end(self, final: FinalState) -> None:
        for (group, partition), offsets in self.offsets.items():
            for offset, value in final.records.get(partition, ()):
                if offset < offsets.highest and offset not in offsets.processed:
                    raise Violation(
                        f"{group} committed {offsets.highest} of {partition}, "
                        f"but nobody in it processed {name_of(value)} at {offset}"
                    )
