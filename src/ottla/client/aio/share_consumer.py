"""Takes records from a queue, from asyncio."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

from ottla.client import share_consumer
from ottla.client.aio.in_thread import InThread, in_thread
from ottla.client.config import ShareConsumerConfig
from ottla.client.messages import Message

_Blocking = share_consumer.ShareConsumer


class ShareConsumer(InThread):
    """Messages are acknowledged with `await consumer.ack(message)`."""

    def __init__(self, config: ShareConsumerConfig | None = None, **settings: Any) -> None:
        super().__init__(_Blocking(config, **settings))
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    subscribe = in_thread(_Blocking.subscribe)
    poll = in_thread(_Blocking.poll)
    ack = in_thread(_Blocking.ack)
    nack = in_thread(_Blocking.nack)
    reject = in_thread(_Blocking.reject)
    commit = in_thread(_Blocking.commit)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Messages as they come, until the consumer is closed."""
        while not self._closed:
            for message in await self.poll():
                yield message
                await self.call(_Blocking.settle, message)

    async def run(
        self, handler: Callable[[Message], Awaitable[object]], *, stop: asyncio.Event | None = None
    ) -> None:
        """Await the handler with every message, until `stop`; see `ottla.client.ShareConsumer`."""
        while stop is None or not stop.is_set():
            for message in await self.poll():
                if stop is not None and stop.is_set():
                    break
                try:
                    await handler(message)
                except Exception as error:
                    await self.call(_Blocking.on_handled, message, error)
                else:
                    await self.call(_Blocking.on_handled, message, None)
        await self.close()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.call(_Blocking.close)
            self.end()
