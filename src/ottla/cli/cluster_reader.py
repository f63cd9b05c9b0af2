"""The nodes of a cluster and what is on them, as one of its brokers tells it."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar
from uuid import UUID

from kio.schema.metadata.v13.response import MetadataResponsePartition

from ottla.cli.broker_call import BrokerCall, check
from ottla.cli.broker_configs import describe_configs
from ottla.cli.errors import CommandError
from ottla.cli.replica_plan import Assignments, Node
from ottla.client.wire.cluster import metadata_request
from ottla.client.wire.configs import BROKER
from ottla.client.wire.nodes import QUORUM_REQUEST, nodes_request
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition

_VERSION_KEY = "ottla.version"
_CORDONED_KEY = "cordoned.log.dirs"
_NO_CONTROLLER = (
    ErrorCode.not_controller,
    ErrorCode.not_leader_or_follower,
    ErrorCode.request_timed_out,
)

T = TypeVar("T")


class Quorum(NamedTuple):
    leader: int
    voters: dict[int, UUID | None]  # The directory of each, by node.
    observers: set[int]

    def role(self, node_id: int) -> str | None:
        if node_id == self.leader:
            return "leader"
        if node_id in self.voters:
            return "voter"
        return "observer" if node_id in self.observers else None


class ClusterNode(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class NodeSettings(NamedTuple):
    """What a node says of itself."""

    version: str | None = None
    cordoned: bool = False  # It gets no new replicas.


class ClusterReader:
    def __init__(self, broker: BrokerCall) -> None:
        self._broker = broker

    def nodes(self) -> list[ClusterNode]:
        """All that are registered, by id."""
        response = self._broker.call(nodes_request(fenced=True))
        check(response.error_code, "the cluster", response.error_message)
        found = (
            ClusterNode(broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced)
            for broker in response.brokers
        )
        return sorted(found)

    def node(self, node_id: int) -> ClusterNode:
        for node in self.nodes():
            if node.node_id == node_id:
                return node
        raise CommandError(f"there is no node {node_id}; `ottla node list` shows them")

    def plan_nodes(self) -> list[Node]:
        """A node that is drained is given nothing."""
        return [
            Node(
                node.node_id,
                node.rack,
                not node.fenced and not self.settings(node).cordoned,
                node.fenced,
            )
            for node in self.nodes()
        ]

    def settings(self, node: ClusterNode) -> NodeSettings:
        """Nothing is known of one that is fenced or does not answer."""
        keys = (_VERSION_KEY, _CORDONED_KEY)
        results = self.ask(
            node, lambda broker: describe_configs(broker, BROKER, [str(node.node_id)], keys)
        )
        values = {config.name: config.value for each in results or () for config in each.configs}
        return NodeSettings(values.get(_VERSION_KEY), bool(values.get(_CORDONED_KEY)))

    def ask(self, node: ClusterNode, question: Callable[[BrokerCall], T]) -> T | None:
        """None of a node that is fenced or does not answer."""
        if node.fenced:
            return None
        try:
            with self._broker.beside(node.node_id, node.host, node.port) as broker:
                return question(broker)
        except CommandError:
            return None

    def partitions(self) -> dict[TopicPartition, MetadataResponsePartition]:
        """Of all topics, also internal ones."""
        response = self._broker.call(metadata_request(None))
        return {
            TopicPartition(topic.name, partition.partition_index): partition
            for topic in response.topics
            for partition in topic.partitions
        }

    def assignments(self) -> Assignments:
        return {
            topic_partition: tuple(partition.replica_nodes)
            for topic_partition, partition in self.partitions().items()
        }

    def quorum(self) -> Quorum | None:
        """None when the broker does not tell."""
        if self._broker.newest_version(QUORUM_REQUEST) < 0:
            return None
        response = self._broker.call(QUORUM_REQUEST)
        check(response.error_code, "the quorum", response.error_message)
        (topic,) = response.topics
        (partition,) = topic.partitions
        check(partition.error_code, "the quorum", partition.error_message)
        return Quorum(
            partition.leader_id,
            {voter.replica_id: voter.replica_directory_id for voter in partition.current_voters},
            {observer.replica_id for observer in partition.observers},
        )

    def has_controller(self, patience_s: float) -> bool:
        """False when the quorum tells nobody of itself: too few of its voters are there.

        Whoever may not ask, or asks a broker that does not tell, hears of one that is in charge.
        """
        if self._broker.newest_version(QUORUM_REQUEST) < 0:
            return True
        response = self._broker.call_within(QUORUM_REQUEST, patience_s)
        return response is not None and response.error_code not in _NO_CONTROLLER
