"""The high watermark of a node never falls while it runs, and never passes its log."""

from typing import TYPE_CHECKING

from tests.raft.violation import Violation

from ottla.raft.ready import Ready

if TYPE_CHECKING:
    from tests.raft.replica import Replica


class MonotonicHighWatermark:
    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], int] = {}  # Keyed by node and life.

    def check(self, replica: "Replica", ready: Ready) -> None:
        assert replica.node is not None
        life, high_watermark = (replica.key.id, replica.life), replica.node.high_watermark
        if high_watermark < self._seen.get(life, 0):
            raise Violation(f"the high watermark of {replica} fell to {high_watermark}")
        self._seen[life] = high_watermark
        if high_watermark > replica.log.end_offset:
            raise Violation(f"the high watermark of {replica} is past its log: {high_watermark}")
