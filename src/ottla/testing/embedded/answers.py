"""Response faults: an API's next responses are errors, late, or lost with their connection.

A request that fails changes nothing. One whose response is late or lost has been carried out.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

from ottla.handlers.api import ColdApi
from ottla.handlers.table import API_TABLE
from ottla.network.answers import Overtakers, Reply
from ottla.network.file_part import Part
from ottla.network.session import Session
from ottla.network.session_hub import Dispatch
from ottla.protocol import hot_offset_commit, hot_produce
from ottla.protocol.codec import read_request, write_response
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import RequestHeader, parse_request_header
from ottla.protocol.hot_fetch import encode_fetch_response

_NOBODY: Overtakers = frozenset()

# Handles the frame in place of the dispatch that it is given.
_Fault = Callable[[Dispatch, Session, RequestHeader, memoryview], None]


class AnswerFaults:
    """A fault set in one thread applies from the next frame in the node's."""

    def __init__(self) -> None:
        self._faults: dict[int, deque[_Fault]] = {}  # By API key.

    def fail(self, api: str, error: str, count: int = 1) -> None:
        """`api` and `error` have Kafka's names: "Produce", "NOT_LEADER_OR_FOLLOWER"."""
        code = _error_code(error)

        def fault(_: Dispatch, session: Session, header: RequestHeader, frame: memoryview) -> None:
            session.send_now(_failure(header, frame, ApiError(code, "a test asked for it")))

        self._add(api, fault, count)

    def delay(self, api: str, seconds: float, count: int = 1) -> None:
        def fault(
            dispatch: Dispatch, session: Session, _: RequestHeader, frame: memoryview
        ) -> None:
            late = _LateSession(session, seconds)
            dispatch(cast("Session", late), frame)
            late.end()

        self._add(api, fault, count)

    def drop(self, api: str, count: int = 1) -> None:
        def fault(
            dispatch: Dispatch, session: Session, _: RequestHeader, frame: memoryview
        ) -> None:
            dispatch(session, frame)
            session.abort("a test asked for it")

        self._add(api, fault, count)

    def clear(self) -> None:
        """Cancel faults that have not happened yet."""
        self._faults = {}

    def around(self, dispatch: Dispatch) -> Dispatch:
        def dispatch_with_faults(session: Session, frame: memoryview) -> None:
            faults = self._faults
            waiting = faults.get(int.from_bytes(frame[:2], "big")) if faults else None
            if waiting:
                header = parse_request_header(frame)
                waiting.popleft()(dispatch, session, header, frame)
            else:
                dispatch(session, frame)

        return dispatch_with_faults

    def _add(self, api: str, fault: _Fault, count: int) -> None:
        self._faults.setdefault(_api_key(api), deque()).extend([fault] * count)


def _api_key(name: str) -> int:
    keys = {api.name: key for key, api in API_TABLE.items()}
    if name not in keys:
        raise ValueError(f"no API is called {name!r}; there are {', '.join(sorted(keys))}")
    return keys[name]


def _error_code(name: str) -> ErrorCode:
    try:
        return ErrorCode[name.lower()]
    except KeyError:
        raise ValueError(f"Kafka has no error named {name!r}") from None


def _failure(header: RequestHeader, frame: memoryview, error: ApiError) -> bytes:
    version, correlation_id, start = header.api_version, header.correlation_id, header.body_position
    match API_TABLE[header.api_key].name:
        case "Produce":
            refused = [
                hot_produce.TopicResult(
                    topic,
                    topic_id,
                    [hot_produce.PartitionResult(each.partition, error.code) for each in produced],
                )
                for topic, topic_id, produced in hot_produce.parse_produce(
                    frame, start, version
                ).topics
            ]
            return hot_produce.encode_produce_response(version, correlation_id, refused)
        case "OffsetCommit":
            results = [
                hot_offset_commit.TopicResult(
                    topic, topic_id, [(each.partition, error.code) for each in partitions]
                )
                for topic, topic_id, partitions in hot_offset_commit.parse_offset_commit(
                    frame, start, version
                ).topics
            ]
            return hot_offset_commit.encode_offset_commit_response(version, correlation_id, results)
        case "Fetch":
            parts = encode_fetch_response(version, correlation_id, 0, error.code, 0, ())
            return b"".join(cast("Sequence[bytes]", parts))
        case _:
            api = cast("ColdApi", API_TABLE[header.api_key])
            response = api.error_response(read_request(header, frame), error)
            return write_response(header.api_key, version, correlation_id, response)


class _LateReply:
    """Replaces a `Reply`; later responses on the connection wait for it."""

    is_newest = False

    def __init__(self, reply: Reply, seconds: float) -> None:
        self.reply = reply
        self.seconds = seconds

    def send(self, parts: Sequence[Part]) -> None:
        asyncio.get_running_loop().call_later(self.seconds, self.reply.send, parts)

    def skip(self) -> None:
        self.send(())

    def let_pass(self, _: Overtakers) -> None:
        return


class _LateSession:
    """A session for one frame whose response is late."""

    def __init__(self, session: Session, seconds: float) -> None:
        set_own = super().__setattr__
        set_own("_session", session)
        set_own("_reply", _LateReply(session.reply(_NOBODY), seconds))
        set_own("_answered", False)

    def reply(self, _: Overtakers = _NOBODY) -> _LateReply:
        super().__setattr__("_answered", True)
        reply: _LateReply = self._reply
        return reply

    def send_now(self, data: bytes) -> None:
        self.reply().send((data,))

    def end(self) -> None:
        """The frame was dispatched; it may have no response."""
        if not self._answered:
            self._reply.reply.skip()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._session, name, value)
