"""Committed records never change: all replicas are identical below the high watermark.

This applies to the metadata and to every partition, but each replica is compacted at its own time.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.log_view import LogView, logs_of
from ottla.testing.simulator.violation import Violation

if TYPE_CHECKING:
    from ottla.testing.simulator.simulated_node import SimulatedNode

_Log = tuple[TopicPartition, UUID | None]
_Batch = tuple[int, int, int]  # Last offset, leader epoch and checksum.


@dataclass(slots=True)
class CommittedPrefix(Checker):
    # By base offset, with the node that had it first.
    batches: defaultdict[_Log, dict[int, tuple[_Batch, str]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    checked: dict[tuple[int, int, _Log], int] = field(default_factory=dict)  # Up to there.

    def look(self, node: "SimulatedNode", logs: Sequence[LogView]) -> None:
        for log in logs:
            replica = (node.node_id, node.life, (log.partition, log.topic_id))
            if not log.compacted and log.high_watermark > self.checked.get(replica, 0):
                self._check(log, self.checked.get(replica, 0), str(node))
                self.checked[replica] = log.high_watermark

    def _check(self, log: LogView, start_offset: int, node: str) -> None:
        known = self.batches[log.partition, log.topic_id]
        for header in log.committed(start_offset):
            batch = (header.last_offset, header.partition_leader_epoch, header.crc)
            first, other = known.setdefault(header.base_offset, (batch, node))
            if first != batch:
                raise Violation(
                    f"{node} has committed {batch} at {header.base_offset} of {log.partition}, "
                    f"where {other} had {first} (last offset, epoch, checksum)"
                )

    def check_end(self, final: FinalState) -> None:
        for node in final.nodes:
            assert node.node is not None
            for log in logs_of(node.node):
                if not log.compacted:
                    self._check(log, log.start_offset, str(node))
