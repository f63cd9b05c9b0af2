"""`GET /topics/{topic}/stream`: records as server-sent events, as they are written.

Without a group each stream sees every record from its start position. An event's id is the next
offset of every partition, so a stream resumed with its Last-Event-ID misses and repeats nothing, at
any gateway. A gap left by retention is a `gap` event.

With a group, its streams and other consumers divide the records: each event carries a delivery,
acknowledged by `POST /ack`, or as soon as it is sent (`ack=auto`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from ottla.client.wire.errors import WireError
from ottla.gateway.api.queue_bodies import lock_ms_of, text_of
from ottla.gateway.api.queues import delivery_fields
from ottla.gateway.core.event_ids import format_event_id
from ottla.gateway.core.filters import Filter, parse_filter
from ottla.gateway.core.queues import Delivery
from ottla.gateway.core.record_json import encode, encode_record
from ottla.gateway.core.starts import Start, parse_start, positions_at, resume
from ottla.gateway.core.tails import Closed, Follower, Gap, Item
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.problems import Problem, problem_of
from ottla.gateway.services import Services

HEARTBEAT_S: Final = 15.0
HEARTBEAT_S_MAX: Final = 300.0
SEND_TIMEOUT_S: Final = 60.0  # For a reader that takes nothing.
RETRY_MS: Final = 1_000
DELIVERIES_MAX: Final = 10  # Received from a group at a time.

_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # Otherwise a proxy would buffer events.
)
_HEARTBEAT: Final = b":\n\n"


def routes(services: Services) -> Sequence[BaseRoute]:
    async def stream(request: Request) -> Response:
        if request.method == "HEAD":
            return Response(headers={name.decode(): text.decode() for name, text in _HEADERS})
        if "group" in request.query_params:
            return _DeliveryStream(services, request)
        return _RecordStream(services, request)

    return [Route("/topics/{topic}/stream", stream, methods=["GET"])]


class EventStream(Response):
    """A response that is written until its reader disconnects or the gateway stops."""

    def __init__(self) -> None:
        self.status_code = 200
        self.background = None
        self._is_gone = False
        self._send: Send | None = None

    async def write(self, data: bytes) -> None:
        """Raises TimeoutError if the reader takes nothing."""
        assert self._send is not None
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def run(self, receive: Receive, send: Send, on_gone: Callable[[], object]) -> None:
        """Send the head, then events; call `on_gone` when the reader disconnects."""
        self._send = send
        await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
        watching = asyncio.ensure_future(self._watch(receive, on_gone))
        try:
            await self.events()
        except (TimeoutError, Closed):
            pass
        except WireError as error:
            data = encode(problem_of(error).body())
            await self.write(b"event: error\ndata: " + data + b"\n\n")
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def events(self) -> None:
        raise NotImplementedError

    async def _watch(self, receive: Receive, on_gone: Callable[[], object]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True
        on_gone()


class _RecordStream(EventStream):
    """Every record, for a reader that tracks its own position."""

    def __init__(self, services: Services, request: Request) -> None:
        super().__init__()
        query = request.query_params
        self._services = services
        self._topic: str = request.path_params["topic"]
        self._heartbeat_s = _heartbeat(query.get("heartbeat"))
        try:
            self._filter = _filter(request)
            self._start = _start(request)
        except ValueError as error:
            raise Problem(400, f"{error}.") from None
        self._follower: Follower

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        tails = self._services.tails
        try:
            positions = await positions_at(tails.source, self._topic, self._start, self._filter)
        except ValueError as error:
            raise Problem(400, f"{error}.") from None
        grows = not self._filter.partitions
        self._follower = await tails.follow(self._topic, positions, self._filter, grows=grows)
        try:
            await self.run(receive, send, self._follower.wake)
        finally:
            self._follower.close()

    async def events(self) -> None:
        follower = self._follower
        seen = dict(follower.positions)
        # An id without data is not shown, but a reader can resume from it.
        await self.write(b"retry: %d\n%s\n" % (RETRY_MS, _id(seen)))
        while not self._is_gone:
            found = await follower.read(self._heartbeat_s)
            parts = [_event(self._topic, item, seen) for item in found]
            if seen != follower.positions:  # The filter dropped records.
                seen = dict(follower.positions)
                parts.append(_id(seen) + b"\n")
            if not self._is_gone:
                await self.write(b"".join(parts) or _HEARTBEAT)


class _DeliveryStream(EventStream):
    """Records from a share group, with this reader as one of its consumers."""

    def __init__(self, services: Services, request: Request) -> None:
        super().__init__()
        query = request.query_params
        self._queues = services.queues
        self._cluster = services.cluster
        self._stopping = services.stopping
        self._topic: str = request.path_params["topic"]
        self._group = text_of(query, "group")
        self._lock_ms = lock_ms_of({"lock": _number(query.get("lock"), "lock")})
        self._heartbeat_s = _heartbeat(query.get("heartbeat"))
        ack = query.get("ack", "client")
        if ack not in ("client", "auto"):
            raise Problem(400, "ack is client or auto.")
        for name in ("offset", "time", "partition", "key", "header"):
            if name in query:
                raise Problem(400, f"A group takes no {name}; it continues from its own position.")
        self._acknowledges = ack == "auto"
        self._receiving: asyncio.Future[list[Delivery]] | None = None

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        validate_topic(self._topic)
        await self._cluster.topic(self._topic)
        await self.run(receive, send, self._stop_receiving)

    async def events(self) -> None:
        await self.write(b"retry: %d\n\n" % RETRY_MS)
        wait_ms = int(self._heartbeat_s * 1000)
        while not self._is_gone and not self._stopping.is_set():
            self._receiving = asyncio.ensure_future(
                self._queues.receive(
                    self._topic,
                    self._group,
                    count=DELIVERIES_MAX,
                    wait_ms=wait_ms,
                    lock_ms=self._lock_ms,
                )
            )
            try:
                await self._send_deliveries(await self._receiving)
            except asyncio.CancelledError:
                if not self._is_gone:
                    raise

    async def _send_deliveries(self, deliveries: list[Delivery]) -> None:
        try:
            events = [b"data: %s\n\n" % encode(delivery_fields(each)) for each in deliveries]
            await self.write(b"".join(events) or _HEARTBEAT)
        except BaseException:
            self._queues.put_back(deliveries)
            raise
        if self._is_gone:
            self._queues.put_back(deliveries)
        elif self._acknowledges and deliveries:
            await self._queues.acknowledge([each.handle for each in deliveries])

    def _stop_receiving(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()


def _event(topic: str, item: Item | Gap, seen: dict[int, int]) -> bytes:
    """One event with its id; advances `seen` past it."""
    if isinstance(item, Gap):
        seen[item.partition] = item.next_offset
        data = {"partition": item.partition, "from": item.first, "to": item.next_offset}
        return _id(seen) + b"event: gap\ndata: " + encode(data) + b"\n\n"
    seen[item.partition] = item.record.offset + 1
    if item.encoded is None:
        item.encoded = encode_record(topic, item.partition, item.record)
    return b"%sdata: %s\n\n" % (_id(seen), item.encoded)


def _id(positions: dict[int, int]) -> bytes:
    return b"id: %s\n" % format_event_id(positions).encode()


def _start(request: Request) -> Start:
    last = request.headers.get("last-event-id") or request.query_params.get("last_event_id")
    if last:
        return resume(last)
    return parse_start(request.query_params.get("offset"), request.query_params.get("time"))


def _filter(request: Request) -> Filter:
    query = request.query_params
    headers: dict[str, list[str]] = {}
    for text in query.getlist("header"):
        name, colon, value = text.partition(":")
        if not colon:
            raise ValueError("header reads name:value")
        headers.setdefault(name, []).append(value)
    partitions = query.getlist("partition")
    if not all(text.isascii() and text.isdecimal() and len(text) < 11 for text in partitions):
        raise ValueError("partition is a number")
    return parse_filter(
        {
            "partitions": [int(text) for text in partitions],
            "keys": query.getlist("key"),
            "headers": headers,
        }
    )


def _number(text: str | None, name: str) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise Problem(400, f"{name} is a number of seconds.") from None


def _heartbeat(text: str | None) -> float:
    if text is None:
        return HEARTBEAT_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= HEARTBEAT_S_MAX:
        raise Problem(400, f"heartbeat is a number of seconds from 1 to {HEARTBEAT_S_MAX:g}.")
    return seconds
