"""Passes the committed records of the metadata log on, in order, on every node.

Cached data, which includes everything new, is passed on at once; more than one portion is passed on
portion by portion, so that the event loop continues in between.
"""

from asyncio import Future, wait
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import NamedTuple

from ottla.machine.contract import RecordCodec
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.log import OffsetAndEpoch
from ottla.runtime.machine_batches import decode_batch, stored_batches
from ottla.runtime.metadata_feed import MetadataFeed
from ottla.runtime.process import Process
from ottla.runtime.raft_log import READ_BYTES, RaftLog, ReadBatches
from ottla.runtime.snapshots import SnapshotContent
from ottla.storage.errors import NotCached


class Applied(NamedTuple):
    """A portion that was passed on."""

    records_count: int
    size: int


OnApplied = Callable[[Applied], None]


@dataclass(slots=True, kw_only=True, eq=False)
class MetadataApplier:
    """Belongs to the loop's thread."""

    log: RaftLog
    codec: RecordCodec
    feed: MetadataFeed
    process: Process
    on_failure: Callable[[BaseException], object]
    applied_offset: int = field(init=False, default=0)  # Everything before it is in the image.
    _committed_offset: int = field(init=False, default=0)
    _waits: bool = field(init=False, default=False)  # For the disk, or for its turn.
    _listeners: list[OnApplied] = field(init=False, default_factory=list)
    # Offset and waiter.
    _waiters: list[tuple[int, Future[None]]] = field(init=False, default_factory=list)

    def listen(self, listener: OnApplied) -> None:
        """Called when `applied_offset` has advanced."""
        self._listeners.append(listener)

    async def load(self) -> None:
        """Start with the newest snapshot, if there is one."""
        newest = self.log.latest_snapshot_id
        if newest is not None:
            self.install(newest, await self.process.in_thread(self._read, newest))

    async def reached(self, offset: int, timeout_s: float | None = None) -> None:
        """Returns when everything before the offset is in the image, or on timeout."""
        if self.applied_offset < offset and (timeout_s is None or timeout_s > 0):
            waiter: Future[None] = self.process.loop.create_future()
            self._waiters.append((offset, waiter))
            await wait([waiter], timeout=timeout_s)
            waiter.cancel()

    def advance(self, committed_offset: int) -> None:
        self._committed_offset = max(committed_offset, self._committed_offset)
        if not self._waits:
            self._go_on()

    def decode(self, content: SnapshotContent) -> list[object]:
        """Call in a thread. ValueError if they are not metadata records."""
        return [self.codec.decode(record.key, record.value) for record in content.records]

    def install(self, snapshot_id: OffsetAndEpoch, records: Sequence[object]) -> None:
        self.feed.replace(records, snapshot_id.offset - 1)
        self.applied_offset = snapshot_id.offset
        self._committed_offset = max(self._committed_offset, snapshot_id.offset)
        self._tell(Applied(len(records), 0))

    def _read(self, snapshot_id: OffsetAndEpoch) -> list[object]:
        return self.decode(self.log.snapshots.read(snapshot_id))

    def _go_on(self) -> None:
        self._waits = False
        if self.applied_offset >= self._committed_offset:
            return
        arguments = self.applied_offset, READ_BYTES, self._committed_offset
        try:
            read = self.log.read_cached(*arguments)
        except NotCached:
            self._waits = True
            reading = self.process.in_thread(lambda: self.log.read(*arguments))
            reading.add_done_callback(lambda done: self._on_read(arguments[0], done))
            return
        self._apply(read)
        if self.applied_offset < self._committed_offset:
            self._waits = True
            self.process.loop.call_soon(self._go_on)

    def _on_read(self, offset: int, reading: "Future[ReadBatches]") -> None:
        if reading.cancelled():
            return
        error = reading.exception()
        if error is not None:
            self.on_failure(error)
            return
        if offset == self.applied_offset:  # Unless a snapshot has overtaken it.
            self._apply(reading.result())
        self._go_on()

    def _apply(self, read: ReadBatches) -> None:
        count = 0
        try:
            for batch in stored_batches(read.data, self.applied_offset):
                for decoded, record in decode_batch(batch, self.codec):
                    self.feed.on_committed(decoded, record.offset)
                    count += 1
        except ValueError as error:
            self.on_failure(error)  # A record of a later version, or a bug: do not guess.
            raise
        self.applied_offset = read.next_offset
        self._tell(Applied(count, len(read.data)))

    def _tell(self, applied: Applied) -> None:
        for listener in self._listeners:
            listener(applied)
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for offset, waiter in waiters:
                if offset > self.applied_offset and not waiter.done():
                    self._waiters.append((offset, waiter))
                elif not waiter.done():
                    waiter.set_result(None)
