"""A log in memory, on a disk that loses unsynced data.

Every batch carries a chain: a hash of everything before it and of itself. Equal chains are equal
histories, even if a snapshot has replaced the records.
"""

import struct
from bisect import bisect_right
from random import Random
from typing import NamedTuple
from zlib import crc32

from ottla.raft.control_records import control_batch, voters_in, voters_record
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import VoterHistory, VoterSet
from ottla.records.batch import read_header

_CHAIN = struct.Struct(">Q")


class Batch(NamedTuple):
    base_offset: int
    end_offset: int
    epoch: int
    data: bytes
    chain: int


class Snapshot(NamedTuple):
    id: OffsetAndEpoch
    content: bytes

    @classmethod
    def of(cls, snapshot_id: OffsetAndEpoch, chain: int, voters: VoterSet) -> "Snapshot":
        batch = control_batch([voters_record(voters)], 0)
        return cls(snapshot_id, _CHAIN.pack(chain) + bytes(batch))

    @property
    def chain(self) -> int:
        return int(_CHAIN.unpack_from(self.content)[0])

    @property
    def voters(self) -> VoterSet:
        return voters_in(self.content, _CHAIN.size)[0][1]


class MemoryLog:
    """Implements `ReplicatedLog`."""

    def __init__(self) -> None:
        self.start = OffsetAndEpoch(0, 0)
        self.start_chain = 0
        self.batches: list[Batch] = []
        self.snapshot: Snapshot | None = None

    def copy(self) -> "MemoryLog":
        other = MemoryLog()
        other.start, other.start_chain = self.start, self.start_chain
        other.batches, other.snapshot = self.batches.copy(), self.snapshot
        return other

    @property
    def start_offset(self) -> int:
        return self.start.offset

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start.offset

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        return self.snapshot.id if self.snapshot else None

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        if self.snapshot is None or self.snapshot.id != snapshot_id:
            return None
        return len(self.snapshot.content)

    def epoch_of(self, offset: int) -> int:
        if offset == self.start.offset - 1:
            return self.start.epoch
        return self.batch_with(offset).epoch

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        index = bisect_right(self.batches, epoch, key=lambda batch: batch.epoch)
        if index == 0:
            return self.start
        return OffsetAndEpoch(self.batches[index - 1].end_offset, self.batches[index - 1].epoch)

    def batch_with(self, offset: int) -> Batch:
        index = bisect_right(self.batches, offset, key=lambda batch: batch.base_offset) - 1
        assert index >= 0
        assert offset < self.batches[index].end_offset
        return self.batches[index]

    def batches_between(self, start_offset: int, end_offset: int) -> list[Batch]:
        first = bisect_right(self.batches, start_offset, key=lambda batch: batch.end_offset)
        last = bisect_right(self.batches, end_offset, key=lambda batch: batch.end_offset)
        return self.batches[first:last]

    def read(self, start_offset: int, max_bytes: int) -> bytes:
        """Whole batches, at least one."""
        read = bytearray()
        for batch in self.batches_between(start_offset, self.end_offset):
            if read and len(read) + len(batch.data) > max_bytes:
                break
            read += batch.data
        return bytes(read)

    def append(self, data: bytes | bytearray) -> Batch:
        header = read_header(data)
        assert header.base_offset == self.end_offset
        before = self.batches[-1].chain if self.batches else self.start_chain
        batch = Batch(
            header.base_offset,
            header.next_offset,
            header.partition_leader_epoch,
            bytes(data),
            before << 32 & 0xFFFFFFFF00000000 | crc32(data, before >> 32 ^ before & 0xFFFFFFFF),
        )
        self.batches.append(batch)
        return batch

    def truncate_to(self, offset: int) -> None:
        while self.batches and self.batches[-1].end_offset > offset:
            assert self.batches[-1].base_offset >= offset, "a cut inside a batch"
            self.batches.pop()

    def install(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.start, self.start_chain = snapshot.id, snapshot.chain
        self.batches.clear()

    def take_snapshot(self, end_offset: int, voters: VoterSet) -> None:
        """Snapshots everything before the end of a batch, and removes the log before it."""
        last = self.batch_with(end_offset - 1)
        assert last.end_offset == end_offset
        self.snapshot = Snapshot.of(OffsetAndEpoch(end_offset, last.epoch), last.chain, voters)
        self.start, self.start_chain = self.snapshot.id, last.chain
        self.batches = [batch for batch in self.batches if batch.base_offset >= end_offset]

    def voters(self, initial: VoterSet) -> VoterHistory:
        history = VoterHistory(initial)
        if self.snapshot is not None:
            history.start_from_snapshot(self.snapshot.id.offset, self.snapshot.voters)
        for batch in self.batches:
            for offset, voters in voters_in(batch.data):
                history.add(offset, voters)
        return history


class Disk:
    """The log after a crash: everything synced, and perhaps some of what followed."""

    def __init__(self) -> None:
        self.quorum_state = QuorumState()
        self._kept = MemoryLog()
        self._since_sync: list[MemoryLog] = []  # The log after each write.

    def wrote(self, log: MemoryLog) -> None:
        self._since_sync.append(log.copy())

    def synced(self, log: MemoryLog) -> None:
        self._kept = log.copy()
        self._since_sync.clear()

    def crash(self, random: Random) -> MemoryLog:
        survived = random.choice([self._kept, *self._since_sync])
        self.synced(survived)
        return survived.copy()
