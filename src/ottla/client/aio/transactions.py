"""Transactions as `async with` blocks."""

import asyncio
from typing import TYPE_CHECKING, Self

from ottla.client import transactions

if TYPE_CHECKING:
    from ottla.client.aio.consumer import Consumer
    from ottla.client.aio.producer import Producer


class Transaction:
    def __init__(self, producer: "Producer", consumer: "Consumer | None") -> None:
        blocking = None if consumer is None else consumer.blocking
        self._consumer = consumer
        self._transaction = transactions.Transaction(producer.blocking, blocking)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._transaction.__enter__)
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        """Runs in the consumer's thread, if there is one, to read the consumer's offsets."""
        if self._consumer is None:
            await asyncio.to_thread(self._transaction.__exit__, kind)
        else:
            await self._consumer.call(lambda _: self._transaction.__exit__(kind))

    def abort(self) -> None:
        self._transaction.abort()
