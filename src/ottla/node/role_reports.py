"""Reports to operators what happens to this node's partitions: leaders and in-sync replicas.

ISR changes are reported by the leader, which knows the reason; leader changes, and whether they are
bad, by the controller.
"""

import logging
from asyncio import AbstractEventLoop
from typing import Final

from ottla.controller.records import NO_LEADER
from ottla.replication.manager import RoleListener
from ottla.replication.partition import Partition
from ottla.runtime.controller_reports import isr_details
from ottla.runtime.log_summaries import LogSummaries

logger = logging.getLogger(__name__)

_NEW_LEADERS: Final = "the controller has named leaders"


def role_reports(node_id: int, loop: AbstractEventLoop) -> RoleListener:
    summaries = LogSummaries(loop, logger)

    def on_new_leader(partition: Partition, leader: int) -> None:
        names = {node_id: "this node", NO_LEADER: "none"}
        detail = names.get(leader, f"node {leader}")
        name = str(partition.log.topic_partition)
        summaries.note_partition(_NEW_LEADERS, "leader", detail, name)

    def on_new_isr(
        partition: Partition, before: tuple[int, ...], after: tuple[int, ...], reason: str
    ) -> None:
        for detail in isr_details(before, after):
            name = str(partition.log.topic_partition)
            summaries.note_partition(reason, "in-sync replicas", detail, name)

    return RoleListener(on_new_leader, on_new_isr)
