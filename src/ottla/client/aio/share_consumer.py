"""Consume a queue from asyncio."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, Self

from ottla.client import share_consumer
from ottla.client.aio.in_thread import InThread, in_thread, in_thread_chained
from ottla.client.config import ShareConsumerConfig

_Blocking = share_consumer.ShareConsumer


class ShareConsumer(InThread):
    """Acknowledge messages with `await consumer.ack(message)`."""

    def __init__(self, config: ShareConsumerConfig | None = None, **settings: Any) -> None:
        super().__init__(_Blocking(config, **settings))
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    subscribe = in_thread_chained(_Blocking.subscribe)
    poll = in_thread(_Blocking.poll)
    ack = in_thread(_Blocking.ack)
    nack = in_thread(_Blocking.nack)
    reject = in_thread(_Blocking.reject)
    renew = in_thread(_Blocking.renew)
    commit = in_thread(_Blocking.commit)

    async def __aiter__(self) -> AsyncIterator[share_consumer.ShareMessage]:
        """Yield messages until the consumer is closed."""
        while not self._closed:
            for message in await self.poll():
                yield message
                await self.call(_Blocking.settle, message)

    async def run(
        self,
        handler: Callable[[share_consumer.ShareMessage], Awaitable[object]],
        *,
        concurrency: int = 1,
        stop: asyncio.Event | None = None,
    ) -> None:
        """Await the handler with every message until SIGTERM, SIGINT or `stop`, then close.

        Like `ottla.client.ShareConsumer.run`, with tasks instead of threads.
        """
        stop = stop or asyncio.Event()
        free = asyncio.Semaphore(concurrency)

        async def handle(message: share_consumer.ShareMessage) -> bool:
            async with free:
                if stop.is_set():
                    return False
                await handler(message)
                return True

        try:
            with _stopping_on_signals(stop):
                while not stop.is_set():
                    await self._handle_all(handle, await self.poll())
        finally:
            await self.close()

    async def _handle_all(
        self,
        handle: Callable[[share_consumer.ShareMessage], Awaitable[bool]],
        messages: Sequence[share_consumer.ShareMessage],
    ) -> None:
        running = {asyncio.ensure_future(handle(message)): message for message in messages}
        renewal = share_consumer.Renewal()
        try:
            while running:
                done, _ = await asyncio.wait(
                    running, timeout=renewal.left_s(), return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    message, error = running.pop(task), task.exception()
                    if error is not None or task.result():
                        await self.call(_Blocking.on_handled, message, error)
                if renewal.is_due():
                    await self.renew(list(running.values()))
        finally:
            for task in running:
                task.cancel()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.call(_Blocking.close)
            self.end()


@contextlib.contextmanager
def _stopping_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Installs signal handlers, in the main thread only; does nothing in other threads."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    previous = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number, handler in previous.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
