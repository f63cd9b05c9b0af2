"""Whether brokers answer, asked of several addresses at once and within a deadline.

Each address is asked in a daemon thread: a name server that is down holds up `getaddrinfo` for
longer than a person waits, and nothing can interrupt it.
"""

import queue
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ottla.client.wire.errors import NotAuthenticated
from ottla.client.wire.security import PLAINTEXT, Security
from ottla.protocol.addresses import Address


class Answer(NamedTuple):
    address: Address
    problem: str | None  # None: a broker answers there.


# ApiVersions v0 with correlation id 1 and without a client id; every broker answers it.
_REQUEST: Final = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
# Metadata v1 of no topics, and the header of SaslHandshake v1, with correlation id 2. A node that
# starts answers the first request only.
_HANDSHAKE_HEADER: Final = bytes.fromhex("0011 0001 00000002 ffff")
_METADATA_REQUEST: Final = bytes.fromhex("0000000e 0003 0001 00000002 ffff 00000000")
_HEAD: Final = struct.Struct(">ii")  # Size and correlation id.
_SIZE_BYTES: Final = 4
_ANSWER_BYTES_MAX: Final = 1 << 20
STARTING: Final = "it starts, and serves nobody yet"


def ask(
    addresses: Sequence[Address], timeout_s: float, security: Security = PLAINTEXT
) -> Iterator[Answer]:
    """One answer for each address, the fastest first."""
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    for address in addresses:
        arguments = (address, timeout_s, security, answers)
        threading.Thread(target=_ask, args=arguments, daemon=True).start()
    deadline = time.monotonic() + timeout_s
    waiting = set(addresses)
    while waiting:
        try:
            answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            yield from (Answer(address, no_answer(timeout_s)) for address in sorted(waiting))
            return
        waiting.discard(answer.address)
        yield answer


def no_answer(timeout_s: float) -> str:
    return f"no answer within {timeout_s:g} s"


def describe_problem(error: OSError, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return no_answer(timeout_s)
    return (error.strerror or str(error)).lower()


def _ask(
    address: Address,
    timeout_s: float,
    security: Security,
    answers: "queue.SimpleQueue[Answer]",
) -> None:
    try:
        with (
            socket.create_connection(address, timeout=timeout_s) as plain,
            security.wrap(plain, address.host) as connection,
        ):
            problem = _problem_of(connection, _second_request(security))
    except NotAuthenticated as error:
        problem = str(error)
    except OSError as error:
        problem = describe_problem(error, timeout_s)
    answers.put(Answer(address, problem))


def _second_request(security: Security) -> bytes:
    """What a node that starts does not answer; one that wants a login answers nothing else yet."""
    if security.sasl is None:
        return _METADATA_REQUEST
    mechanism = security.sasl.mechanism.encode()
    body = _HANDSHAKE_HEADER + len(mechanism).to_bytes(2, "big") + mechanism
    return len(body).to_bytes(_SIZE_BYTES, "big") + body


def _problem_of(connection: socket.socket, second_request: bytes) -> str | None:
    connection.sendall(_REQUEST)
    head = _receive(connection, _HEAD.size)
    if len(head) < _HEAD.size:
        return "it closed the connection; does it expect TLS, or another protocol?"
    size, correlation_id = _HEAD.unpack(head)
    if correlation_id != 1 or not _HEAD.size <= size <= _ANSWER_BYTES_MAX:
        return "what answers there does not speak the Kafka protocol"
    try:
        connection.sendall(second_request)
        rest = size - (_HEAD.size - _SIZE_BYTES)
        answered = len(_receive(connection, rest + 1)) > rest
    except ConnectionError:
        answered = False
    return None if answered else STARTING


def _receive(connection: socket.socket, size: int) -> bytes:
    """As many bytes, or fewer if the connection ends."""
    received = b""
    while len(received) < size and (chunk := connection.recv(size - len(received))):
        received += chunk
    return received
