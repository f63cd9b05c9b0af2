"""Calls to a broker that librdkafka has no function for, in the protocol's own words."""

from collections.abc import Iterator
from typing import Any, Self

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.metadata.v13.response import MetadataResponsePartition
from kio.static.primitive import i8

from ottla.cli.cluster_nodes import ClusterNode, NodeSettings, Quorum
from ottla.cli.connection import (
    LOOK_AFTER_S,
    TIMEOUT_S,
    Connection,
    nodes_unreachable,
    with_hint,
)
from ottla.cli.errors import CommandError, ExitCode
from ottla.cli.reach import describe_problem, no_answer
from ottla.cli.replica_plan import Assignments, Node
from ottla.client.wire.cluster import CoordinatorType, metadata_request
from ottla.client.wire.configs import BROKER, describe_request
from ottla.client.wire.connection import Connection as Wire
from ottla.client.wire.errors import NotAuthenticated, Unreachable
from ottla.client.wire.nodes import QUORUM_REQUEST, nodes_request
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition

UNKNOWN_NODE = -1

_VERSION_KEY = "ottla.version"
CORDONED_KEY = "cordoned.log.dirs"
_NO_CONTROLLER = (
    ErrorCode.not_controller,
    ErrorCode.not_leader_or_follower,
    ErrorCode.request_timed_out,
)


class BrokerCall:
    """A connection to one broker, which knows the whole cluster: one request at a time."""

    def __init__(
        self, connection: Connection, node_id: int, host: str, port: int, *, looks: bool = True
    ) -> None:
        """`looks`: when an answer does not come, see whether all nodes of the cluster answer."""
        self.node_id = node_id
        self._looks = looks
        self._connection = connection
        self._address = Address(host, port)
        try:
            self._wire = Wire(
                host,
                port,
                client_id="ottla-cli",
                timeout_s=TIMEOUT_S,
                connect_timeout_s=connection.connect_timeout,
                security=connection.security(),
            )
        except NotAuthenticated as error:
            raise CommandError(str(error), ExitCode.UNREACHABLE) from None
        except Unreachable as error:
            if looks and node_id != UNKNOWN_NODE:
                connection.check_nodes()
            raise self._unreachable(error, connection.connect_timeout) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()

    def beside(self, node: ClusterNode) -> "BrokerCall":
        """Another broker, with the same settings."""
        return BrokerCall(self._connection, node.node_id, node.host, node.port)

    def newest_version(self, request: Any) -> int:
        """Of this kind of request, as the broker serves it; -1 if it does not."""
        return self._wire.versions.get(request.__api_key__, (0, -1))[1]

    def call(self, request: Any, api_version: int | None = None) -> Any:
        """The newest version's response to the newest version's request."""
        try:
            sent = self._wire.send(request, api_version)
            if self._looks and not self._wire.is_answered_within(LOOK_AFTER_S):
                self._connection.check_nodes()
            return self._wire.receive(sent)
        except Unreachable as error:
            if self._looks and isinstance(error.reason, TimeoutError):
                raise self._connection.silent(no_answer(TIMEOUT_S)) from None
            raise self._unreachable(error, TIMEOUT_S) from None

    def call_within(self, request: Any, patience_s: float) -> Any:
        """As `call`; None if no answer comes in time, and the connection is of no more use."""
        try:
            sent = self._wire.send(request)
            return self._wire.receive(sent) if self._wire.is_answered_within(patience_s) else None
        except Unreachable as error:
            raise self._unreachable(error, TIMEOUT_S) from None

    def nodes(self) -> list[ClusterNode]:
        """All that are registered, by id."""
        response = self.call(nodes_request(fenced=True))
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
        keys = (_VERSION_KEY, CORDONED_KEY)
        response = self.ask(node, describe_request(BROKER, [str(node.node_id)], keys))
        results = response.results if response else ()
        values = {config.name: config.value for each in results for config in each.configs}
        return NodeSettings(values.get(_VERSION_KEY), bool(values.get(CORDONED_KEY)))

    def ask(self, node: ClusterNode, request: Any) -> Any:
        """The response of a node; None of one that is fenced or does not answer."""
        if node.fenced:
            return None
        try:
            with self.beside(node) as broker:
                return broker.call(request)
        except CommandError:
            return None

    def partitions(self) -> dict[TopicPartition, MetadataResponsePartition]:
        """Of all topics, also internal ones."""
        response = self.call(metadata_request(None))
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
        if self.newest_version(QUORUM_REQUEST) < 0:
            return None
        response = self.call(QUORUM_REQUEST)
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
        if self.newest_version(QUORUM_REQUEST) < 0:
            return True
        response = self.call_within(QUORUM_REQUEST, patience_s)
        return response is not None and response.error_code not in _NO_CONTROLLER

    def _unreachable(self, error: Unreachable, timeout_s: float) -> CommandError:
        if error.reason is None:  # It has no version of the API that we speak.
            return CommandError(str(error))
        problem = str(error.reason)
        if isinstance(error.reason, OSError):
            problem = describe_problem(error.reason, timeout_s)
        if self.node_id == UNKNOWN_NODE:
            return self._connection.unreachable(problem)
        return nodes_unreachable({self.node_id: f"{self._address} ({problem})"})


def bootstrap_broker(connection: Connection, *, looks: bool = True) -> BrokerCall:
    """The first of the brokers that were named which answers."""
    return BrokerCall(connection, UNKNOWN_NODE, *connection.reach(), looks=looks)


def every_broker(connection: Connection) -> Iterator[BrokerCall]:
    """All that run, one after another; a node that is gone leads nothing any more."""
    with bootstrap_broker(connection) as broker:
        nodes = broker.nodes()
    for node in nodes:
        if not node.fenced:
            with broker.beside(node) as other:
                yield other


def find_group(connection: Connection, group: str, request: Any) -> Any:
    """What a request that describes one group tells of it; None if there is no such group."""
    with coordinator(connection, CoordinatorType.GROUP, group) as broker:
        (found,) = broker.call(request).groups
    if found.error_code is ErrorCode.group_id_not_found:
        return None
    check(found.error_code, group, found.error_message)
    return found


def coordinator(connection: Connection, kind: i8, key: str) -> BrokerCall:
    """The broker that a group, or a transactional id, lives on."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    with bootstrap_broker(connection) as broker:
        (found,) = broker.call(request).coordinators
    check(found.error_code, key)
    return BrokerCall(connection, found.node_id, found.host, found.port)


def check(code: ErrorCode, of: str, message: str | None = None) -> None:
    """`message` is what the broker said about the error, if it did."""
    if code is not ErrorCode.none:
        raise CommandError(with_hint(f"{of}: {message or code.name.replace('_', ' ')}", code))
