"""Calls to a broker that librdkafka has no function for, in the protocol's own words."""

import socket
import struct
from typing import Any, Self

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.static.primitive import i8

from ottla.cli.connection import TIMEOUT_S, Connection, parse_address
from ottla.cli.errors import CommandError
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ErrorCode

_SIZE = struct.Struct(">i")
_GROUP_KEY = i8(0)
_TRANSACTION_KEY = i8(1)
_FIND_COORDINATOR_VERSION = 4

UNKNOWN_NODE = -1


class BrokerCall:
    """A connection to one broker: one request at a time."""

    def __init__(self, connection: Connection, node_id: int, host: str, port: int) -> None:
        self.node_id = node_id
        try:
            self._socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        except OSError as error:
            raise connection.unreachable(f"{host}:{port} does not answer ({error})") from None
        self._connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def beside(self, node_id: int, host: str, port: int) -> "BrokerCall":
        """Another broker, with the same settings."""
        return BrokerCall(self._connection, node_id, host, port)

    def call(self, request: Any, api_version: int) -> Any:
        """The newest version's response to the newest version's request."""
        api_key = request.__api_key__
        try:
            self._socket.sendall(write_request(api_key, api_version, 1, "ottla-cli", request))
            (size,) = _SIZE.unpack(self._receive(_SIZE.size))
            frame = self._receive(size)
        except OSError as error:
            raise self._connection.unreachable(f"it does not answer ({error})") from None
        return read_response(api_key, api_version, memoryview(frame))[1]

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise ConnectionResetError("the connection was closed")
            data += chunk
        return bytes(data)


def bootstrap_broker(connection: Connection) -> BrokerCall:
    """The first of the brokers that were named which answers; it knows the whole cluster."""
    addresses = connection.bootstrap_server.split(",")
    for address in addresses[:-1]:
        try:
            return BrokerCall(connection, UNKNOWN_NODE, *parse_address(address))
        except CommandError:
            continue
    return BrokerCall(connection, UNKNOWN_NODE, *parse_address(addresses[-1]))


def every_broker(connection: Connection) -> list[BrokerCall]:
    brokers = connection.metadata().brokers
    return [
        BrokerCall(connection, node_id, str(node.host), node.port)
        for node_id, node in sorted(brokers.items())
    ]


def transaction_coordinator(connection: Connection, transactional_id: str) -> BrokerCall:
    """The broker that a transactional id lives on."""
    return _coordinator(connection, _TRANSACTION_KEY, transactional_id)


def group_coordinator(connection: Connection, group: str) -> BrokerCall:
    """The broker that a group lives on."""
    return _coordinator(connection, _GROUP_KEY, group)


def _coordinator(connection: Connection, key_type: i8, key: str) -> BrokerCall:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
    with bootstrap_broker(connection) as broker:
        (found,) = broker.call(request, _FIND_COORDINATOR_VERSION).coordinators
    check(found.error_code, key)
    return BrokerCall(connection, found.node_id, found.host, found.port)


def check(code: ErrorCode, of: str, message: str | None = None) -> None:
    """`message` is what the broker said about the error, if it did."""
    if code is not ErrorCode.none:
        raise CommandError(f"{of}: {message or code.name.replace('_', ' ')}")
