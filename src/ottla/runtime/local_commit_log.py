"""A commit log on this node alone: a quorum of one. What is synced is committed.

The log and its snapshots are in one directory. After a snapshot the log before it is removed, so a
start reads the newest snapshot and a tail that is not much longer than it.
"""

import logging
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Final, NamedTuple

from ottla.machine.contract import RecordCodec
from ottla.records.batch import read_header
from ottla.records.builder import Record
from ottla.runtime.commit_log import Listener
from ottla.runtime.flusher import Flusher
from ottla.runtime.machine_batches import StoredBatch, stored_batches
from ottla.runtime.snapshots import Snapshot, SnapshotStore
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog

logger = logging.getLogger(__name__)

SNAPSHOT_RECORDS_MIN: Final = 10_000
_READ_BYTES: Final = 1 << 16
_PORTION_RECORDS: Final = 500


class _Size(NamedTuple):
    records: int = 0
    bytes: int = 0


class LocalCommitLog:
    """Implements `CommitLog`. It belongs to one thread, that of the loop."""

    def __init__(
        self,
        log: PartitionLog,
        snapshots: SnapshotStore,
        loop: AbstractEventLoop,
        executor: Executor,
        *,
        now_ms: Callable[[], int],
        snapshot_bytes: int,
        leader_epoch: int = 1,
    ) -> None:
        self.next_offset = log.log_end_offset
        self.committed_offset = 0
        self._log = log
        self._snapshots = snapshots
        self._loop = loop
        self._executor = executor
        self._now_ms = now_ms
        self._snapshot_bytes = snapshot_bytes
        self._leader_epoch = leader_epoch
        self._flusher = Flusher(loop, executor, self._on_flush_failed)
        self._listener: Listener | None = None
        self._snapshot_size = 0  # Records in the newest snapshot.
        self._tail = _Size()  # What came after it.
        self._writing_snapshot = False

    def listen(self, listener: Listener) -> None:
        assert self._listener is None
        self._listener = listener

    async def load(self) -> AsyncIterator[Sequence[StoredBatch]]:
        # What a crash of the process left in the page cache is not synced yet.
        await self._loop.run_in_executor(self._executor, self._log.flush)
        self.next_offset = self.committed_offset = self._log.log_end_offset
        self._log.high_watermark = self.committed_offset
        self._snapshot_size = 0
        self._tail = _Size()
        offset = 0
        snapshot = await self._loop.run_in_executor(self._executor, self._snapshots.newest)
        if snapshot is not None:
            offset = snapshot.next_offset
            records = await self._loop.run_in_executor(
                self._executor, self._read_snapshot, snapshot
            )
            self._snapshot_size = len(records)
            for start in range(0, len(records), _PORTION_RECORDS):
                yield (StoredBatch(records[start : start + _PORTION_RECORDS]),)
        self._validate_reaches(offset)
        while offset < self._log.log_end_offset:
            content, next_offset = await self._loop.run_in_executor(
                self._executor, self._read_tail, offset
            )
            batches = stored_batches(content, offset)
            self._count(sum(len(batch.records) for batch in batches), len(content))
            yield batches
            offset = next_offset

    def append(self, batch: bytearray) -> None:
        header = read_header(batch)
        self._log.append_as_leader(
            memoryview(batch), header, self._leader_epoch, header.max_timestamp
        )
        self.next_offset = self._log.log_end_offset
        self._count(header.records_count, len(batch))
        appended = self.next_offset
        self._flusher.request(self._log, lambda: self._on_flushed(appended))

    def snapshot_due(self) -> bool:
        if self._writing_snapshot:
            return False
        records_max = max(SNAPSHOT_RECORDS_MIN, self._snapshot_size)
        return self._tail.records >= records_max or self._tail.bytes >= self._snapshot_bytes

    def write_snapshot(self, records: Sequence[object], codec: RecordCodec) -> None:
        assert self.committed_offset == self.next_offset
        snapshot = Snapshot(self.next_offset, self._leader_epoch)
        now_ms = self._now_ms()
        self._writing_snapshot = True
        self._tail = _Size()
        writing = self._executor.submit(self._write, snapshot, records, codec, now_ms)
        writing.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(self._on_written, len(records), done)
        )

    def _write(
        self, snapshot: Snapshot, records: Sequence[object], codec: RecordCodec, now_ms: int
    ) -> None:
        self._snapshots.write(snapshot, records, codec, now_ms)
        self._log.roll()
        self._log.delete_records_before(snapshot.next_offset)

    def _on_written(self, size: int, writing: "Future[None]") -> None:
        self._writing_snapshot = False
        error = writing.exception()
        if error is None:
            self._snapshot_size = size
        else:
            # The log is whole without it; the next one is tried when as much has been added.
            logger.error("could not write a snapshot of the metadata: %s", error)

    def _read_snapshot(self, snapshot: Snapshot) -> list[Record]:
        offset = snapshot.next_offset - 1
        return [record._replace(offset=offset) for record in self._snapshots.read(snapshot)]

    def _validate_reaches(self, offset: int) -> None:
        log = self._log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise StorageError(
                log.directory,
                f"the snapshot ends at offset {offset}, and the log is from "
                f"{log.log_start_offset} to {log.log_end_offset}",
            )

    def _read_tail(self, offset: int) -> tuple[bytes, int]:
        found = self._log.read(offset, _READ_BYTES, self._log.log_end_offset)
        assert found is not None, "there is something before the end of the log"
        return found.read(), found.next_offset

    def _count(self, records: int, size: int) -> None:
        self._tail = _Size(self._tail.records + records, self._tail.bytes + size)

    def _on_flushed(self, offset: int) -> None:
        if offset > self.committed_offset:
            self.committed_offset = offset
            self._log.high_watermark = offset
            if self._listener is not None:
                self._listener.on_committed()

    def _on_flush_failed(self, _: object, error: BaseException) -> None:
        if self._listener is not None:
            self._listener.on_failed(error)
