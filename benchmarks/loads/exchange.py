"""Single requests as kio entities, for requests so rare that their cost does not matter."""

import io
import socket
import time
from collections.abc import Callable
from typing import TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8
from kio.static.protocol import Entity, Payload

from benchmarks.loads import frames

Response = TypeVar("Response", bound=Entity)
RESPONSE_HEADER_SIZE = 5  # The correlation id, and no tagged fields.
GROUP = i8(0)
COORDINATOR_SECONDS_MAX = 120.0
NOT_READY = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
    ErrorCode.unknown_topic_or_partition,
)


def ask(connection: socket.socket, request: Payload, response_type: type[Response]) -> Response:
    connection.sendall(encode(request))
    return decode(frames.receive_response(connection), response_type)


def encode(request: Payload) -> bytes:
    """The frame of a request with a flexible header."""
    body = io.BytesIO()
    entity_writer(type(request))(body, request)
    return frames.frame(request.__api_key__, request.__version__, body.getvalue())


def decode(answer: bytes, response_type: type[Response]) -> Response:
    response, _ = entity_reader(response_type)(answer, RESPONSE_HEADER_SIZE)
    return response


def wait_for_coordinator(connection: socket.socket, group: str) -> None:
    """Waits until the group has a coordinator; this also creates the offsets topic."""
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=(group,))

    def found() -> ErrorCode:
        return ask(connection, request, FindCoordinatorResponse).coordinators[0].error_code

    wait_until_ready(found)


def wait_until_ready(try_once: Callable[[], ErrorCode]) -> None:
    """Retries until the coordinator is ready and there is no error; raises on other errors."""
    deadline = time.perf_counter() + COORDINATOR_SECONDS_MAX
    while code := try_once():
        if code not in NOT_READY or time.perf_counter() > deadline:
            raise frames.LoadError(f"the coordinator refused with error {code.value}")
        time.sleep(0.002)
