"""What one node has seen committed never changes on any node."""

from typing import TYPE_CHECKING

from tests.raft.violation import Violation

from ottla.raft.ready import Ready

if TYPE_CHECKING:
    from tests.raft.replica import Replica


class CommittedPrefix:
    def __init__(self) -> None:
        self.end_offset = 0  # Some node has seen everything before it committed.
        self.chain = 0
        self._chains: dict[int, int] = {0: 0}  # Keyed by the end offset of a committed batch.
        self._checked: dict[tuple[int, int], int] = {}  # Commits by node and life.

    def check(self, replica: "Replica", ready: Ready) -> None:
        node, log = replica.node, replica.log
        assert node is not None
        life = (replica.key.id, replica.life)
        if ready.truncate_to is not None and ready.truncate_to < self._checked.get(life, 0):
            raise Violation(f"{replica} cuts what is committed at {ready.truncate_to}")
        if ready.high_watermark is not None:
            start_offset = max(self._checked.get(life, 0), log.start_offset)
            for batch in log.batches_between(start_offset, node.high_watermark):
                self._commit(replica, batch.end_offset, batch.chain)
            self._checked[life] = node.high_watermark
        if log.start_offset > 0:
            self._commit(replica, log.start_offset, log.start_chain)

    def _commit(self, replica: "Replica", end_offset: int, chain: int) -> None:
        known = self._chains.setdefault(end_offset, chain)
        if known != chain:
            raise Violation(f"{replica} has committed other records before {end_offset}")
        if end_offset > self.end_offset:
            self.end_offset, self.chain = end_offset, chain
