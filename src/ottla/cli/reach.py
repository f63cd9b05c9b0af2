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
_HEAD: Final = struct.Struct(">ii")  # Size and correlation id.
_ANSWER_BYTES_MAX: Final = 1 << 20


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
            connection.sendall(_REQUEST)
            problem = _problem_of(connection)
    except NotAuthenticated as error:
        problem = str(error)
    except OSError as error:
        problem = describe_problem(error, timeout_s)
    answers.put(Answer(address, problem))


def _problem_of(connection: socket.socket) -> str | None:
    head = b""
    while len(head) < _HEAD.size:
        chunk = connection.recv(_HEAD.size - len(head))
        if not chunk:
            return "it closed the connection; does it expect TLS, or another protocol?"
        head += chunk
    size, correlation_id = _HEAD.unpack(head)
    if correlation_id != 1 or not _HEAD.size <= size <= _ANSWER_BYTES_MAX:
        return "what answers there does not speak the Kafka protocol"
    return None
