"""Each epoch has one leader, for partitions and for the quorum."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker
from ottla.testing.simulator.log_view import LogView
from ottla.testing.simulator.violation import Violation

if TYPE_CHECKING:
    from ottla.testing.simulator.simulated_node import SimulatedNode


@dataclass(slots=True)
class SingleLeader(Checker):
    leaders: dict[tuple[TopicPartition, UUID | None, int], int] = field(default_factory=dict)

    def look(self, node: "SimulatedNode", logs: Sequence[LogView]) -> None:
        for log in logs:
            if log.is_leader:
                epoch = (log.partition, log.topic_id, log.leader_epoch)
                leader = self.leaders.setdefault(epoch, node.node_id)
                if leader != node.node_id:
                    raise Violation(
                        f"node {node.node_id} leads {log.partition} in epoch {log.leader_epoch}, "
                        f"and node {leader} did"
                    )
