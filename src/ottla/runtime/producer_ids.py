"""Producer ids for this broker's clients, from blocks that the controller allocates."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from ottla.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse

Allocate = Callable[[], Awaitable["AllocateProducerIdsResponse"]]


class ProducerIds:
    """No id is handed out twice. The rest of a block is lost when the process ends."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._block: Iterator[int] = iter(())
        self._allocating = asyncio.Lock()
        self._refusals_count = 0
        self._reason = ""  # Of the last refusal.

    async def next_id(self) -> int:
        """ApiError COORDINATOR_LOAD_IN_PROGRESS, as in Kafka, while there is no block.

        Clients retry after that error, but treat some of the controller's own errors as fatal.
        Callers that wait while a block is refused fail with it: asking for each of them in turn
        would take longer than clients take to retry, and ever more of them would wait.
        """
        refusals_count = self._refusals_count
        async with self._allocating:
            number = next(self._block, None)
            if number is None:
                if refusals_count != self._refusals_count:
                    raise self._refusal()
                allocated = await self._next_block()
                first = allocated.producer_id_start
                self._block = iter(range(first, first + allocated.producer_id_len))
                number = next(self._block)
            return number

    async def _next_block(self) -> "AllocateProducerIdsResponse":
        try:
            return await self._allocate()
        except ApiError as error:
            self._refusals_count += 1
            self._reason = error.message
            raise self._refusal() from error

    def _refusal(self) -> ApiError:
        return ApiError(
            ErrorCode.coordinator_load_in_progress,
            f"there are no producer ids now, try again: {self._reason}",
        )
