"""A peer that breaks the protocol is Unreachable, whatever it sends."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from kio.schema.api_versions.v4.response import ApiVersion, ApiVersionsResponse
from kio.static.primitive import i16

from ottla.client.wire.connection import Connection
from ottla.client.wire.errors import BrokerError, Unreachable
from ottla.protocol.codec import write_response
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.times import NO_THROTTLE

Serve = Callable[..., Connection]

METADATA = MetadataRequest(
    topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
)


def versions(correlation_id: int = 1, error: ErrorCode = ErrorCode.none) -> bytes:
    keys = [ApiVersion(api_key=i16(3), min_version=i16(0), max_version=i16(99))]
    response = ApiVersionsResponse(
        error_code=error, api_keys=tuple(keys), throttle_time=NO_THROTTLE
    )
    return write_response(18, 0, correlation_id, response)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A connection to a peer that sends these bytes, one item per request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer(answers: tuple[bytes, ...]) -> None:
            peer, _ = server.accept()
            with peer:
                for data in answers:
                    (size,) = struct.unpack(">i", peer.recv(4, socket.MSG_WAITALL))
                    peer.recv(size, socket.MSG_WAITALL)
                    peer.sendall(data)

        threads = []
        connections = []

        def connect(*answers: bytes) -> Connection:
            threads.append(threading.Thread(target=answer, args=(answers,)))
            threads[-1].start()
            port = server.getsockname()[1]
            connections.append(Connection("127.0.0.1", port, client_id="c", timeout_s=60))
            return connections[-1]

        yield connect
        for connection in connections:
            connection.close()
        for thread in threads:
            thread.join()


def test_versions_are_the_newest_of_both(serve: Serve) -> None:
    connection = serve(versions())
    assert connection.version(3) == 13
    with pytest.raises(Unreachable, match="API 19"):
        connection.version(19)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x00\x00",
        struct.pack(">i", -5),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 2) + b"ab",
        struct.pack(">ii", 8, 2) + bytes(4),
        struct.pack(">ii", 8, 77) + bytes(4),
        struct.pack(">ii", 100, 2) + bytes(9),
    ],
)
def test_a_broken_answer_is_an_unreachable_broker(serve: Serve, answer: bytes) -> None:
    connection = serve(versions(), answer)
    with pytest.raises(Unreachable):
        connection.call(METADATA)


def test_a_broken_greeting_is_an_unreachable_broker(serve: Serve) -> None:
    with pytest.raises(Unreachable):
        serve(struct.pack(">i", 3) + b"abc")


def test_a_greeting_that_is_an_error_is_said(serve: Serve) -> None:
    with pytest.raises(BrokerError, match="cluster authorization failed"):
        serve(versions(error=ErrorCode.cluster_authorization_failed))


def test_nobody_listens() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        Connection("127.0.0.1", 1, client_id="c", timeout_s=1)
