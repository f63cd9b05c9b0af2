"""What the doctor looks at in a running cluster, read once."""

import time
from typing import NamedTuple

from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
from kio.schema.metadata.v13.response import MetadataResponsePartition

from ottla.cli.broker_call import BrokerCall, bootstrap_broker
from ottla.cli.broker_configs import topic_configs
from ottla.cli.cluster_nodes import ClusterNode, NodeSettings, Quorum
from ottla.cli.connection import Connection
from ottla.cli.damaged_replicas import DamagedReplicas, read_damage
from ottla.cli.errors import CommandError
from ottla.client.wire.nodes import QUORUM_REQUEST
from ottla.protocol.topics import TopicPartition

NO_LEADER = -1


class Directory(NamedTuple):
    node: int
    path: str
    is_offline: bool
    total: int  # Bytes; -1 if it is not known.
    free: int


class ExaminedCluster(NamedTuple):
    nodes: list[ClusterNode]
    settings: dict[int, NodeSettings]  # By node.
    unreachable: dict[int, str]  # Nodes, and what happens at the address that they advertise.
    quorum: Quorum | None
    partitions: dict[TopicPartition, MetadataResponsePartition]
    minimums: dict[str, int]  # min.insync.replicas, by topic.
    damage: DamagedReplicas
    directories: list[Directory]
    controller_ahead_s: float  # The controller's clock, compared with this machine's.


def read_cluster(connection: Connection) -> ExaminedCluster:
    with bootstrap_broker(connection, looks=False) as broker:
        nodes = broker.nodes()
        active = [node for node in nodes if not node.fenced]
        unreachable = connection.problems_of(active, connection.connect_timeout)
        answering = [node for node in active if node.node_id not in unreachable]
        partitions = broker.partitions()
        topics = {topic_partition.topic for topic_partition in partitions}
        minimums = topic_configs(broker, "min.insync.replicas", topics)
        state = ExaminedCluster(
            nodes,
            {node.node_id: broker.settings(node) for node in answering},
            unreachable,
            Quorum(NO_LEADER, {}, set()),
            partitions,
            {topic: int(value or 1) for topic, value in minimums.items()},
            read_damage(broker) if not unreachable else {},
            [each for node in answering for each in _directories(broker, node)],
            0.0,
        )
        try:  # Last, because the connection is lost if no controller answers.
            quorum = broker.quorum()
            return state._replace(quorum=quorum, controller_ahead_s=_controller_ahead_s(broker))
        except CommandError:
            return state


def _directories(broker: BrokerCall, node: ClusterNode) -> list[Directory]:
    """None of a node that has gone meanwhile."""
    response = broker.ask(node, DescribeLogDirsRequest(topics=()))
    return [
        Directory(
            node.node_id, each.log_dir, bool(each.error_code), each.total_bytes, each.usable_bytes
        )
        for each in (response.results if response else ())
    ]


def _controller_ahead_s(broker: BrokerCall) -> float:
    """The leader of the quorum has always fetched just now, by its own clock."""
    began = time.time()
    response = broker.call(QUORUM_REQUEST)
    now = time.time()
    for topic in response.topics:
        for partition in topic.partitions:
            for voter in partition.current_voters:
                if voter.replica_id == partition.leader_id and voter.last_fetch_timestamp > 0:
                    theirs = float(voter.last_fetch_timestamp) / 1000
                    return theirs - min(max(theirs, began), now)  # 0 within the time of the call.
    return 0.0
