"""The elections that the controller holds on its own.

It periodically checks the partitions whose leader is not their first replica: once that is back in
sync it leads again, so that a returning broker gets its share back. It also checks those without a
leader: their topic may allow an unclean election by now.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import Election
from ottla.controller.partition_index import PartitionIndex
from ottla.controller.records import NO_LEADER, PartitionChangeRecord
from ottla.machine.contract import Timers
from ottla.machine.result import Result

ELECTIONS_PER_STEP: Final = 1000
_TIMER: Final = "elections"


class ElectionControl:
    """`preferred` tells whether leadership returns to the first replica automatically."""

    def __init__(
        self,
        index: PartitionIndex,
        leadership: Leadership,
        timers: Timers,
        *,
        preferred: bool,
        interval_ms: int,
    ) -> None:
        self._index = index
        self._leadership = leadership
        self._timers = timers
        self._preferred = preferred
        self._interval_ms = interval_ms

    def elect_soon(self, now_ms: int) -> None:
        """There is more to elect than fits into one operation."""
        self._timers.schedule(_TIMER, now_ms, self._elect_in_turn)

    def elect_with(self, broker_id: int) -> Iterator[PartitionChangeRecord]:
        """The broker becomes active: elect leaders where a partition may have waited for it."""
        leadership = self._leadership
        for partition in self._index.leaderless():
            if broker_id not in partition.replicas:
                continue
            change = leadership.change(partition)
            if leadership.has_replica(partition, broker_id):
                change.also_active = broker_id
            yield from change.records()

    def _elect_in_turn(self, now_ms: int) -> Result[None]:
        records = tuple(islice(self._pending(), ELECTIONS_PER_STEP))
        is_more = len(records) == ELECTIONS_PER_STEP
        deadline_ms = now_ms if is_more else now_ms + self._interval_ms
        self._timers.schedule(_TIMER, deadline_ms, self._elect_in_turn)
        return Result(None, records, cause="a better leader is back in sync")

    def _pending(self) -> Iterator[PartitionChangeRecord]:
        leaderless = ((partition, None) for partition in self._index.leaderless())
        not_preferred = (
            (partition, Election.PREFERRED)
            for partition in (self._index.not_preferred() if self._preferred else ())
            if partition.leader != NO_LEADER
        )
        for partition, election in chain(leaderless, not_preferred):
            yield from self._leadership.change(partition, election).records()
