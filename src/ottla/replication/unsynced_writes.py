"""Unacknowledged writes (acks=0) that no reader sees before they are on disk.

The producer gets no response. What follows on its connection, other than writes, waits until they
are visible, as it would behind answered writes.
"""

from functools import partial

from ottla.network.answers import Reply
from ottla.protocol.errors import ApiError
from ottla.replication.partition_leader import PartitionLeader

Unsynced = tuple[PartitionLeader, int]  # With the offset after the write.


class UnsyncedWrites:
    """Skips `reply` once all added writes are synced, or cannot be. Writes are added while its
    reply is the newest; so a stream of them costs one waiter per sync."""

    __slots__ = ("_ends", "reply")

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self._ends: dict[PartitionLeader, int] = {}  # The offsets after the last writes.

    def add_all(self, writes: list[Unsynced]) -> None:
        for leader, end_offset in writes:
            is_new = leader not in self._ends
            self._ends[leader] = end_offset
            if is_new:
                self._wait(leader)

    def _wait(self, leader: PartitionLeader) -> None:
        leader.flushed_waiters.add(self._ends[leader], partial(self._on_synced, leader))

    def _on_synced(self, leader: PartitionLeader, error: ApiError | None) -> None:
        if error is None and leader.partition.log.flushed_offset < self._ends[leader]:
            self._wait(leader)
            return
        del self._ends[leader]
        if not self._ends:
            self.reply.skip()
