"""A commit log on a partition of an internal topic: everything below the high watermark counts.

The machine behind it runs on the partition's leader. It is loaded up to the log end, not the high
watermark: whatever a leader has in its log is eventually committed, or it no longer leads.

Errors are ones that the client of a coordinator understands: it looks the coordinator up again
after NOT_COORDINATOR, and retries after COORDINATOR_NOT_AVAILABLE.
"""

from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from typing import Final

from ottla.coordination.latest_by_key import LatestByKey
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import read_header
from ottla.replication.partition import Partition
from ottla.runtime.commit_log import Listener
from ottla.runtime.machine_batches import StoredBatch, stored_batches
from ottla.storage.log import PartitionLog
from ottla.storage.reading import LogSlice, ReadHint

READ_BYTES: Final = 1 << 17  # About a thousand commits, read in a millisecond or two.

_COORDINATOR_CODES: Final = {
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
}


class PartitionCommitLog:
    """Implements `CommitLog`. Belongs to the thread of the loop."""

    def __init__(self, partition: Partition, loop: AbstractEventLoop, executor: Executor) -> None:
        assert partition.leader is not None
        self._leader = partition.leader
        self._partition = partition
        self._loop = loop
        self._executor = executor
        self._listener: Listener | None = None
        self._waiting = False

    @property
    def _log(self) -> PartitionLog:
        """Do not keep it: a move between log directories replaces it."""
        return self._partition.log

    @property
    def next_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def committed_offset(self) -> int:
        return self._log.high_watermark

    def listen(self, listener: Listener) -> None:
        assert self._listener is None
        self._listener = listener

    async def load(self) -> AsyncIterator[Sequence[StoredBatch]]:
        self._log.log_directory.check_online()  # What is not synced there will never be committed.
        if not self._log.config.compact:  # Later records do not replace earlier ones.
            async for batches in self._stored():
                yield batches
            self._wait()
            return
        latest = LatestByKey()
        async for batches in self._stored():
            for batch in batches:
                if latest.is_full or not latest.takes(batch):
                    for records in latest.drain():
                        yield (StoredBatch(records),)
                if latest.takes(batch):
                    latest.add(batch.records)
                else:
                    yield (batch,)
            yield ()
        for records in latest.drain():
            yield (StoredBatch(records),)
        self._wait()

    async def _stored(self) -> AsyncIterator[list[StoredBatch]]:
        log = self._log
        offset, end_offset = log.log_start_offset, log.log_end_offset
        hint: ReadHint | None = None
        while offset < end_offset:
            if log is not self._log:
                log, hint = self._log, None
            read = await self._loop.run_in_executor(
                self._executor, self._read, offset, end_offset, hint
            )
            if read is None:
                return  # The rest was removed meanwhile.
            found, content = read
            yield stored_batches(content, offset)
            offset, hint = found.next_offset, found.hint

    def append(self, batch: bytearray) -> None:
        leader = self._leader
        header = read_header(batch)
        try:
            leader.validate_in_sync_replicas()
            if header.is_control:
                leader.append_control(batch)
            else:
                leader.append(memoryview(batch), header, header.max_timestamp)
        except ApiError as error:
            raise coordinator_error(error) from error
        self._wait()

    def _read(
        self, offset: int, end_offset: int, hint: ReadHint | None
    ) -> tuple[LogSlice, bytes] | None:
        found = self._log.read(
            max(offset, self._log.log_start_offset), READ_BYTES, end_offset, hint
        )
        return None if found is None else (found, found.read())

    def _wait(self) -> None:
        """One waiter at a time covers all appends made before it fires."""
        if not self._waiting and self.next_offset > self.committed_offset:
            self._waiting = True
            self._leader.committed_waiters.add(self.next_offset, self._on_progress)

    def _on_progress(self, error: ApiError | None) -> None:
        self._waiting = False
        assert self._listener is not None
        if error is not None:
            self._listener.on_failed(coordinator_error(error))
        else:
            self._listener.on_committed()
            self._wait()


def coordinator_error(error: ApiError) -> ApiError:
    return ApiError(_COORDINATOR_CODES.get(error.code, error.code), error.message)
