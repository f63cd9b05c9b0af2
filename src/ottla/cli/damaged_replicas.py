"""Replicas whose records are damaged on the disk of a node, as the nodes themselves tell.

A replica is repaired from the others by itself; what stays here has no good copy.
"""

from typing import NamedTuple

from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest

from ottla.cli.broker_call import BrokerCall
from ottla.protocol.messages.describe_log_dirs import WHOLE_LOG
from ottla.protocol.topics import TopicPartition


class DamagedReplica(NamedTuple):
    node: int
    first_offset: int | None  # None when nothing of the log is served.
    last_offset: int | None

    def __str__(self) -> str:
        if self.first_offset is None:
            return f"damaged on {self.node}: the whole log"
        if self.first_offset == self.last_offset:
            return f"damaged on {self.node}: offset {self.first_offset}"
        return f"damaged on {self.node}: offsets {self.first_offset} to {self.last_offset}"


DamagedReplicas = dict[TopicPartition, list[DamagedReplica]]


def read_damage(broker: BrokerCall) -> DamagedReplicas:
    """Of all topics; nothing is known of nodes that do not answer, or not this."""
    found: DamagedReplicas = {}
    for node in broker.nodes():
        response = broker.ask(node, DescribeLogDirsRequest(topics=None))
        for stretch in response.damage if response else ():
            whole = stretch.first_offset == WHOLE_LOG
            offsets = (None, None) if whole else (stretch.first_offset, stretch.last_offset)
            topic_partition = TopicPartition(stretch.topic, stretch.partition_index)
            found.setdefault(topic_partition, []).append(DamagedReplica(node.node_id, *offsets))
    return found
