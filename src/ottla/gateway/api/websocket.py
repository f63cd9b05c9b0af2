"""`GET /ws`: publish, subscribe, receive and acknowledge over one WebSocket.

Every message is one JSON object with an `op`. The client chooses an `id` for each, text or a
number; the gateway's replies carry the same id.

    publish      topic, value, key, headers, partition, timestamp    -> published
    subscribe    topic, offset or time, filter, credit               -> subscribed, record ..., gap
    receive      topic, group, lock, credit                          -> receiving, delivery ...
    credit       id of a subscribe or receive, credit                (no answer)
    cancel       id of a subscribe or receive                        -> ended
    ack, nack, extend, reject   delivery or deliveries, delay, lock  -> settled
                                                                     or error, with problem details

A subscription sends as many records as it has credit for, then waits for more: a reader that is
slow on one or all subscriptions delays nobody else.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from ottla.client.wire.cluster import TopicPartition
from ottla.gateway.api.queue_bodies import count_of, delay_ms_of, handles_of, lock_ms_of, text_of
from ottla.gateway.api.queues import delivery_fields, settled_fields
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.filters import parse_filter
from ottla.gateway.core.record_json import encode, encode_record, record_from_json
from ottla.gateway.core.starts import parse_start, positions_at
from ottla.gateway.core.tails import Closed, Follower, Gap
from ottla.gateway.core.topic_names import validate_partition, validate_topic
from ottla.gateway.origins import is_foreign
from ottla.gateway.problems import problem_of
from ottla.gateway.services import Services

CREDIT: Final = 100
CREDIT_MAX: Final = 100_000
SUBSCRIPTIONS_MAX: Final = 100  # Per connection.
WORKING_MAX: Final = 200  # Messages being handled; no more are read at the limit.
RECEIVE_MAX: Final = 100
WAIT_S: Final = 20.0

_GOING_AWAY: Final = 1001
_POLICY_VIOLATION: Final = 1008
_INVALID_DATA: Final = 1007

Message = Mapping[str, Any]


def routes(services: Services) -> Sequence[BaseRoute]:
    async def websocket(connection: WebSocket) -> None:
        if is_foreign(dict(connection.scope["headers"])):
            await connection.close(_POLICY_VIOLATION)  # Before acceptance: 403.
            return
        await connection.accept()
        await _Session(services, connection).run()

    return [WebSocketRoute("/ws", websocket)]


class _Credit:
    """How many records a subscription may still send."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._more = asyncio.Event()

    def add(self, count: int) -> None:
        self.count = min(self.count + count, CREDIT_MAX)
        self._more.set()

    async def wait(self) -> None:
        while self.count <= 0:
            self._more.clear()
            await self._more.wait()


class _Session:
    def __init__(self, services: Services, connection: WebSocket) -> None:
        self._services = services
        self._connection = connection
        self._sending = asyncio.Lock()
        self._subscriptions: dict[str | int, tuple[asyncio.Task[None], _Credit]] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(WORKING_MAX)
        self._operations: Mapping[str, Callable[[Message], Awaitable[None]]] = {
            "publish": self._publish,
            "subscribe": self._subscribe,
            "receive": self._receive,
            "credit": self._add_credit,
            "cancel": self._cancel,
            "ack": self._settle,
            "nack": self._settle,
            "extend": self._settle,
            "reject": self._settle,
        }

    async def run(self) -> None:
        """Returns when the client disconnects or the gateway stops."""
        reading = asyncio.ensure_future(self._read())
        stopping = asyncio.ensure_future(self._services.stopping.wait())
        try:
            await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end(reading, stopping)

    async def _end(self, reading: asyncio.Task[None], stopping: asyncio.Task[Any]) -> None:
        is_stopping = not reading.done()
        reading.cancel()
        stopping.cancel()
        subscriptions = [task for task, _ in self._subscriptions.values()]
        for task in subscriptions:
            task.cancel()
        await asyncio.gather(reading, stopping, *subscriptions, return_exceptions=True)
        if is_stopping and self._working:  # Accepted messages are answered.
            await asyncio.wait(self._working, timeout=self._services.settings.drain_s / 2)
        for task in self._working:
            task.cancel()
        if self._connection.client_state is WebSocketState.CONNECTED and is_stopping:
            with suppress(RuntimeError, OSError):
                await self._connection.close(_GOING_AWAY)

    async def _read(self) -> None:
        while True:
            try:
                text = await self._connection.receive_text()
            except WebSocketDisconnect:
                return
            except KeyError:  # Bytes instead of text.
                await self._connection.close(_INVALID_DATA)
                return
            await self._room.acquire()
            task = asyncio.ensure_future(self._handle(text))
            self._working.add(task)
            task.add_done_callback(self._on_handled)

    def _on_handled(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._room.release()

    async def _handle(self, text: str) -> None:
        number: str | int | None = None
        try:
            message = _parse(text)
            number = _id_of(message)
            operation = self._operations.get(message.get("op", ""))
            if operation is None:
                raise Invalid(f"`op` is one of {', '.join(self._operations)}")
            await operation(message)
        except (WebSocketDisconnect, asyncio.CancelledError):
            raise
        except Exception as error:
            await self._fail(number, error)

    async def _fail(self, number: str | int | None, error: Exception) -> None:
        await self._answer("error", number, problem=problem_of(error).body())

    async def _answer(self, op: str, number: str | int | None, **fields: Any) -> bool:
        return await self._send(encode({"op": op, "id": number, **fields}).decode())

    async def _send(self, text: str) -> bool:
        """False if the client is gone; the reading side then ends the session."""
        async with self._sending:
            try:
                await self._connection.send_text(text)
            except (RuntimeError, OSError, WebSocketDisconnect):
                return False
            return True

    # Operations.

    async def _publish(self, message: Message) -> None:
        topic = text_of(message, "topic")
        try:
            record = record_from_json(
                {name: message[name] for name in message if name not in ("op", "id", "topic")}
            )
        except ValueError as error:
            raise Invalid(str(error)) from None
        found = await self._services.publisher.topic(topic)
        if record.partition is not None:
            validate_partition(TopicPartition(topic, record.partition), found)
        done = await self._services.publisher.publish(topic, record)
        await self._answer("published", message["id"], partition=done.partition, offset=done.offset)

    async def _settle(self, message: Message) -> None:
        handles, _ = handles_of(message)
        queues = self._services.queues
        match message["op"]:
            case "ack":
                settled = await queues.acknowledge(handles)
            case "nack":
                settled = await queues.release(handles, delay_ms=delay_ms_of(message))
            case "reject":
                settled = await queues.reject(handles)
            case _:
                lock_ms = lock_ms_of(message)
                if lock_ms is None:
                    raise Invalid("`lock` is missing: for how many seconds from now")
                settled = await queues.extend(handles, lock_ms=lock_ms)
        await self._answer(
            "settled", message["id"], results=[settled_fields(each) for each in settled]
        )

    async def _add_credit(self, message: Message) -> None:
        subscription = self._subscriptions.get(message["id"])
        if subscription is not None:
            subscription[1].add(_credit_of(message))

    async def _cancel(self, message: Message) -> None:
        subscription = self._subscriptions.get(message["id"])
        if subscription is None:
            raise Invalid(f"no subscription has the id {message['id']!r}")
        subscription[0].cancel()

    async def _subscribe(self, message: Message) -> None:
        try:
            topic = text_of(message, "topic")
            wanted = parse_filter(message.get("filter"))
            start = parse_start(_text_or_none(message, "offset"), _text_or_none(message, "time"))
            tails = self._services.tails
            credit = _Credit(_credit_of(message))
            positions = await positions_at(tails.source, topic, start, wanted)
        except ValueError as error:
            raise Invalid(str(error)) from None
        follower = await tails.follow(topic, positions, wanted, grows=not wanted.partitions)
        self._start(message["id"], credit, self._push_records(message["id"], follower, credit))
        await self._answer("subscribed", message["id"], offsets=positions)

    async def _receive(self, message: Message) -> None:
        topic, group = text_of(message, "topic"), text_of(message, "group")
        validate_topic(topic)
        await self._services.cluster.topic(topic)
        credit = _Credit(_credit_of(message))
        lock_ms = lock_ms_of(message)
        work = self._push_deliveries(message["id"], topic, group, lock_ms, credit)
        self._start(message["id"], credit, work)
        await self._answer("receiving", message["id"])

    def _start(self, number: str | int, credit: _Credit, work: Any) -> None:
        try:
            if number in self._subscriptions:
                raise Invalid(f"the id {number!r} is in use")
            if len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
                raise Invalid(f"a connection has at most {SUBSCRIPTIONS_MAX} subscriptions")
        except Invalid:
            work.close()
            raise
        self._subscriptions[number] = asyncio.ensure_future(self._run(number, work)), credit

    async def _run(self, number: str | int, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            if not self._services.stopping.is_set():
                await self._answer("ended", number)
        except Closed:
            pass
        except Exception as error:
            await self._fail(number, error)
        finally:
            del self._subscriptions[number]

    async def _push_records(self, number: str | int, follower: Follower, credit: _Credit) -> None:
        head = f'{{"op":"record","id":{json.dumps(number)},"record":'
        try:
            while True:
                for item in await follower.read(WAIT_S):
                    await credit.wait()
                    if isinstance(item, Gap):
                        gap = {"partition": item.partition, "from": item.first}
                        await self._answer("gap", number, **gap, to=item.next_offset)
                        continue
                    if item.encoded is None:
                        item.encoded = encode_record(follower.topic, item.partition, item.record)
                    credit.count -= 1
                    await self._send(f"{head}{item.encoded.decode()}}}")
        finally:
            follower.close()

    async def _push_deliveries(
        self, number: str | int, topic: str, group: str, lock_ms: int | None, credit: _Credit
    ) -> None:
        queues = self._services.queues
        while True:
            await credit.wait()
            count = min(credit.count, RECEIVE_MAX)
            found = await queues.receive(
                topic, group, count=count, wait_ms=int(WAIT_S * 1000), lock_ms=lock_ms
            )
            sent = 0
            try:
                for delivery in found:
                    credit.count -= 1
                    if not await self._answer("delivery", number, record=delivery_fields(delivery)):
                        return
                    sent += 1
            finally:
                queues.put_back(found[sent:])


def _parse(text: str) -> Message:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise Invalid("the message is not JSON") from None
    if not isinstance(message, dict):
        raise Invalid("the message is not a JSON object")
    return message


def _id_of(message: Message) -> str | int:
    number = message.get("id")
    if isinstance(number, bool) or not isinstance(number, str | int):
        raise Invalid("`id` is missing: a text or a whole number of your choice")
    return number


def _credit_of(message: Message) -> int:
    return count_of(message, "credit", CREDIT, CREDIT_MAX, least=0)


def _text_or_none(message: Message, name: str) -> str | None:
    value = message.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return None if value is None else text_of(message, name)
