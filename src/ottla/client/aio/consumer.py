"""Read records from asyncio, alone or as a member of a group.

All work, including rebalance callbacks, runs in the consumer's own thread.
"""

from collections.abc import AsyncIterator
from typing import Any, Self

from ottla.client import consumer
from ottla.client.aio.in_thread import InThread, in_thread, in_thread_chained
from ottla.client.config import ConsumerConfig
from ottla.client.messages import Message
from ottla.protocol.topics import TopicPartition

_Blocking = consumer.Consumer


class Consumer(InThread):
    def __init__(self, config: ConsumerConfig | None = None, **settings: Any) -> None:
        super().__init__(_Blocking(config, **settings))
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.blocking.forget_handed_out()
        await self.close()

    subscribe = in_thread_chained(_Blocking.subscribe)
    assign = in_thread_chained(_Blocking.assign)
    unsubscribe = in_thread(_Blocking.unsubscribe)
    poll = in_thread(_Blocking.poll)
    commit = in_thread(_Blocking.commit)
    committed = in_thread(_Blocking.committed)
    position = in_thread(_Blocking.position)
    positions = in_thread(_Blocking.positions)
    seek = in_thread(_Blocking.seek)
    seek_to_beginning = in_thread(_Blocking.seek_to_beginning)
    seek_to_end = in_thread(_Blocking.seek_to_end)
    seek_to_time = in_thread(_Blocking.seek_to_time)
    rewind = in_thread(_Blocking.rewind)
    pause = in_thread(_Blocking.pause)
    resume = in_thread(_Blocking.resume)
    lag = in_thread(_Blocking.lag)

    @property
    def assignment(self) -> list[TopicPartition]:
        partitions: list[TopicPartition] = self.blocking.assignment
        return partitions

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield messages until the consumer is closed."""
        while not self._closed:
            await self.call(_Blocking.fill)
            while (message := self.blocking.take()) is not None:
                yield message

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.call(_Blocking.close)
            self.end()
