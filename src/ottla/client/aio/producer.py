"""Write records from asyncio."""

import asyncio
import datetime as dt
import functools
import time
from asyncio import Future
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaException

from ottla.client import producer
from ottla.client.config import ProducerConfig, WhenFull
from ottla.client.delay import GivenHeaders
from ottla.client.errors import BufferFull, NotFlushed
from ottla.client.messages import RecordMetadata
from ottla.client.producer import SENDS_PER_POLL

if TYPE_CHECKING:
    from ottla.client.aio.transactions import Transaction

_FULL_PAUSE_S = 0.005
_FLUSH_PAUSE_S = 0.001
_POLL_S = 0.005


class Producer:
    """`await producer.send(...)` buffers a record and returns an awaitable for its offset.

    A producer belongs to the event loop in which it was started.
    """

    def __init__(self, config: ProducerConfig | None = None, **settings: Any) -> None:
        self.blocking = producer.Producer(config, **settings)
        self.config = self.blocking.config
        self._loop: asyncio.AbstractEventLoop
        self._timer: asyncio.TimerHandle | None = None  # Set while deliveries are outstanding.
        self._unpolled_count = 0

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self.blocking.start, polls=False)
        return self

    async def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        partition: int | None = None,
        headers: GivenHeaders | None = None,
        timestamp: int | None = None,
        deliver_after: float | dt.timedelta | None = None,
    ) -> "Future[RecordMetadata]":
        """See `ottla.client.Producer.send`. Waits only if the buffer is full."""
        future: Future[RecordMetadata] = self._loop.create_future()
        arguments = (topic, value, key, partition, headers, timestamp, deliver_after)
        on_delivery = functools.partial(_settle, future)
        try:
            self.blocking.send_now(on_delivery, *arguments)
        except BufferError:
            await self._send_when_there_is_room(on_delivery, *arguments)
        self._unpolled_count += 1
        if self._unpolled_count >= SENDS_PER_POLL:
            self._unpolled_count = 0
            self.blocking.raw.poll(0)
            await asyncio.sleep(0)
        if self._timer is None:
            self._timer = self._loop.call_later(_POLL_S, self._poll)
        return future

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until every record is delivered or has failed; NotFlushed after the timeout."""
        raw = self.blocking.raw
        await asyncio.to_thread(raw.flush, 0)  # Send lingering batches now.
        deadline = None if timeout is None else time.monotonic() + timeout
        while len(raw):
            if deadline is not None and time.monotonic() > deadline:
                raise NotFlushed(f"{len(raw)} records are not delivered after {timeout:g} s")
            raw.poll(0)
            await asyncio.sleep(_FLUSH_PAUSE_S)

    async def close(self, timeout: float | None = None) -> None:
        """Flush and disconnect."""
        try:
            await self.flush(timeout)
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            await asyncio.to_thread(self.blocking.close, 0)

    def transaction(self, consumer: Any = None) -> "Transaction":
        """`async with producer.transaction(): ...`; see `ottla.client.Producer.transaction`."""
        from ottla.client.aio.transactions import Transaction

        return Transaction(self, consumer)

    def _poll(self) -> None:
        """Deliveries are polled in the event loop itself, so they cross no thread boundary."""
        producer = self.blocking.raw
        producer.poll(0)
        self._timer = self._loop.call_later(_POLL_S, self._poll) if len(producer) else None

    async def _send_when_there_is_room(self, *arguments: Any) -> None:
        if self.config.when_full is WhenFull.RAISE:
            raise BufferFull("the buffer is full") from None
        deadline = time.monotonic() + self.config.max_block_ms / 1000
        while True:
            self.blocking.raw.poll(0)
            await asyncio.sleep(_FULL_PAUSE_S)
            try:
                self.blocking.send_now(*arguments)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    text = f"the buffer is full for {self.config.max_block_ms} ms"
                    raise BufferFull(text) from None


def _settle(future: "Future[RecordMetadata]", error: Any, message: Any) -> None:
    """Runs in the event loop, which polls."""
    if future.done():
        return
    if error is None:
        future.set_result(RecordMetadata(message.topic(), message.partition(), message.offset()))
    else:
        future.set_exception(KafkaException(error))
