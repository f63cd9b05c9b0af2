"""Producer ids for the clients of this broker, out of blocks that the controller hands out."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse

from ottla.protocol.errors import ApiError, ErrorCode

Allocate = Callable[[], Awaitable[AllocateProducerIdsResponse]]


class ProducerIds:
    """No id is given twice. What is left of a block when the process ends is lost."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._block: Iterator[int] = iter(())
        self._allocating = asyncio.Lock()

    async def next_id(self) -> int:
        """ApiError COORDINATOR_LOAD_IN_PROGRESS, as in Kafka, while the controller gives no block.

        Clients try again then; some of the controller's own errors they take for the end.
        """
        async with self._allocating:
            number = next(self._block, None)
            if number is None:
                allocated = await self._next_block()
                first = allocated.producer_id_start
                self._block = iter(range(first, first + allocated.producer_id_len))
                number = next(self._block)
            return number

    async def _next_block(self) -> AllocateProducerIdsResponse:
        try:
            return await self._allocate()
        except ApiError as error:
            raise ApiError(
                ErrorCode.coordinator_load_in_progress,
                f"there are no producer ids now, try again: {error}",
            ) from error
