"""Calls to a broker that librdkafka has no function for, in the protocol's own words."""

from collections.abc import Iterator
from typing import Any, Self

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.static.primitive import i8

from ottla.cli.connection import (
    LOOK_AFTER_S,
    TIMEOUT_S,
    Connection,
    nodes_unreachable,
    with_hint,
)
from ottla.cli.errors import CommandError, ExitCode
from ottla.cli.reach import describe_problem, no_answer
from ottla.client.wire.cluster import CoordinatorType
from ottla.client.wire.connection import Connection as Wire
from ottla.client.wire.errors import NotAuthenticated, Unreachable
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode

UNKNOWN_NODE = -1


class BrokerCall:
    """A connection to one broker: one request at a time."""

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

    def beside(self, node_id: int, host: str, port: int) -> "BrokerCall":
        """Another broker, with the same settings."""
        return BrokerCall(self._connection, node_id, host, port)

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
    """The first of the brokers that were named which answers; it knows the whole cluster."""
    return BrokerCall(connection, UNKNOWN_NODE, *connection.reach(), looks=looks)


def every_broker(connection: Connection) -> Iterator[BrokerCall]:
    """All that run, one after another; a node that is gone leads nothing any more."""
    from ottla.cli.cluster_reader import ClusterReader

    with bootstrap_broker(connection) as broker:
        nodes = ClusterReader(broker).nodes()
    for node in nodes:
        if not node.fenced:
            with BrokerCall(connection, node.node_id, node.host, node.port) as broker:
                yield broker


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
