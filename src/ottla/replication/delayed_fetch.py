"""A fetch that waits until there is enough to send."""

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from ottla.protocol.errors import ApiError
from ottla.protocol.hot_fetch import AbortedTransaction, PartitionData
from ottla.protocol.lazy_dataclass import dataclass
from ottla.replication.counters import ReplicaCounters
from ottla.replication.fetch_sessions import WantedPartition
from ottla.replication.partition import Partition
from ottla.replication.replica_selection import LEADER
from ottla.storage.errors import NotCached
from ottla.storage.reading import LogSlice

FindPartition = Callable[[str | UUID, int], Partition]
Fetched = tuple[WantedPartition, PartitionData]


# The replica from which the consumer should preferably read an offset, or LEADER.
ChooseReplica = Callable[[Partition, int], int]


@dataclass(frozen=True, slots=True)
class FetchTerms:
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    committed_only: bool
    choose_replica: ChooseReplica | None = None


class DelayedFetch:
    """Reads once; answers at once if that is enough, otherwise when data arrives or time runs out.

    Errors and missing partitions are also answered at once.
    """

    __slots__ = (
        "_counters",
        "_failed",
        "_find",
        "_loop",
        "_on_complete",
        "_scheduled",
        "_size",
        "_terms",
        "_timer",
        "_waiting_on",
        "_wanted",
        "done",
    )

    def __init__(
        self,
        find: FindPartition,
        wanted: Sequence[WantedPartition],
        terms: FetchTerms,
        loop: asyncio.AbstractEventLoop,
        on_complete: Callable[[list[Fetched]], None],
        counters: ReplicaCounters,
    ) -> None:
        self._counters = counters
        self._find = find
        self._wanted = wanted
        self._terms = terms
        self._loop = loop
        self._on_complete = on_complete
        self._size = 0
        self._failed = False
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_on: list[Partition] = []
        self.done = False  # Answered or cancelled.

    def start(self) -> None:
        self._read_all(self._answer_or_wait)

    def cancel(self, _: object = None) -> None:
        """No one waits for the answer any more.

        Drops every reference that leads back here, or every waiting fetch would be a cycle.
        """
        self.done = True
        self._on_complete = _nothing
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._counters.fetches_waiting -= 1
        for partition in self._waiting_on:
            partition.stop_waiting(self._on_data)

    def _answer_or_wait(self, fetched: list[Fetched]) -> None:
        if self.done:
            return
        if self._satisfied() or self._terms.max_wait_ms <= 0 or not self._wanted:
            self._complete(fetched)
            return
        self._timer = self._loop.call_later(self._terms.max_wait_ms / 1000, self._on_time_up)
        self._counters.fetches_waiting += 1
        for wanted in self._wanted:
            try:
                partition = self._find(wanted.topic, wanted.partition)
            except ApiError:
                self._on_data()  # It went away while a thread was reading.
            else:
                partition.wait_for_data(self._on_data)
                self._waiting_on.append(partition)

    def _satisfied(self) -> bool:
        return self._failed or self._size >= self._terms.min_bytes

    def _read_all(self, then: Callable[[list[Fetched]], None]) -> None:
        """Locate the batches; in a thread if that must read from disk."""
        try:
            fetched = self._locate(cached_only=True)
        except NotCached:
            self._counters.fetches_from_disk += 1
            reading = self._loop.run_in_executor(None, self._locate)
            reading.add_done_callback(lambda done: then(done.result()))
        else:
            then(fetched)

    def _locate(self, *, cached_only: bool = False) -> list[Fetched]:
        self._size = 0
        self._failed = False
        return [(wanted, self._read(wanted, cached_only)) for wanted in self._wanted]

    def _read(self, wanted: WantedPartition, cached_only: bool) -> PartitionData:
        terms, asked = self._terms, wanted.asked
        try:
            partition = self._find(wanted.topic, wanted.partition)
            if asked.current_leader_epoch != -1:
                partition.validate_leader_epoch(asked.current_leader_epoch)
            if terms.choose_replica is not None and partition.leader is not None:
                preferred = terms.choose_replica(partition, asked.fetch_offset)
                if preferred != LEADER:
                    self._failed = True  # Nothing to wait for here.
                    return _data(wanted, partition, None, preferred_read_replica=preferred)
            if asked.last_fetched_epoch >= 0:
                diverging = partition.consumer_divergence(
                    asked.fetch_offset, asked.last_fetched_epoch
                )
                if diverging is not None:
                    self._failed = True
                    return _data(wanted, partition, None)._replace(diverging_epoch=diverging)
            room = terms.max_bytes - self._size
            records = None
            if room > 0 or not self._size:
                records = partition.read(
                    asked.fetch_offset,
                    min(asked.partition_max_bytes, room),
                    committed_only=terms.committed_only,
                    cached_only=cached_only,
                )
        except ApiError as error:
            self._failed = True
            return PartitionData(wanted.partition, error.code)
        if records is not None:
            if self._size and records.size > room:
                records = None  # One batch too large for the rest of the response.
            else:
                self._size += records.size
        return _data(wanted, partition, records, committed_only=terms.committed_only)

    def _on_data(self) -> None:
        """Called for every append; handles all appends of one turn of the loop at once."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._scheduled = False
        if not self.done:
            self._read_all(self._answer_if_satisfied)

    def _answer_if_satisfied(self, fetched: list[Fetched]) -> None:
        if self._satisfied():
            self._complete(fetched)

    def _on_time_up(self) -> None:
        self._read_all(self._complete)

    def _complete(self, fetched: list[Fetched]) -> None:
        if not self.done:
            on_complete = self._on_complete
            self.cancel()
            on_complete(fetched)


def _nothing(_: list[Fetched]) -> None:
    pass


def _data(
    wanted: WantedPartition,
    partition: Partition,
    records: LogSlice | None,
    *,
    committed_only: bool = False,
    preferred_read_replica: int = LEADER,
) -> PartitionData:
    log = partition.log
    aborted = None
    if committed_only:
        aborted = () if records is None else _aborted_transactions(partition, records)
    return PartitionData(
        wanted.partition,
        0,
        log.high_watermark,
        log.last_stable_offset(log.high_watermark),
        log.log_start_offset,
        aborted,
        preferred_read_replica,
        records,
    )


def _aborted_transactions(partition: Partition, records: LogSlice) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(aborted.producer_id, aborted.first_offset)
        for aborted in partition.log.aborted_transactions(records.first_offset, records.next_offset)
    ]
