"""The calls of share-partition leaders and the group coordinator to the share coordinators.

They go to the current coordinator of a share-partition, here or on another broker. If it is still
loading, or has moved, the call is retried for a while. Writes are not, because one that waits for a
coordinator could be overtaken by a later write.
"""

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ottla.coordination.share_coordinator import ShareCoordinator
from ottla.groups.share.parked import ParkedChange
from ottla.groups.share.state_coordinator import (
    NO_WRITER,
    SharePartitionKey,
    ShareState,
    StateWrite,
)
from ottla.protocol.errors import ApiError, ErrorCode

R = TypeVar("R")

_RETRIES: Final = 100
_RETRY_DELAY_S: Final = 0.05
_TRANSIENT: Final = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)


class SharePersister:
    def __init__(self, find: Callable[[SharePartitionKey], ShareCoordinator]) -> None:
        self._find = find

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        await self._patiently(lambda: self._find(key).initialize(key, state_epoch, start_offset))

    async def read(
        self, key: SharePartitionKey, leader_epoch: int, writer: int = NO_WRITER
    ) -> ShareState:
        """A leader passes its writer number; its writes are counted from then on."""
        return await self._patiently(lambda: self._find(key).read(key, leader_epoch, writer))

    async def read_parked(self, key: SharePartitionKey, leader_epoch: int) -> list[ParkedChange]:
        """All pages of the parked records."""
        pages: list[ParkedChange] = []
        first = 0

        def read() -> Awaitable[ParkedChange]:
            return self._find(key).read_parked(key, leader_epoch, first)

        while True:
            page = await self._patiently(read)
            if not page.offsets:
                return pages
            pages.append(page)
            first = page.offsets[-1] + 1

    async def read_summary(self, key: SharePartitionKey) -> ShareState:
        return await self._patiently(lambda: self._find(key).read_summary(key))

    async def delete(self, key: SharePartitionKey) -> None:
        await self._patiently(lambda: self._find(key).delete(key))

    def write(self, key: SharePartitionKey, write: StateWrite) -> "Future[None]":
        """ApiError, raised or in the future: the outcome is unknown."""
        return self._find(key).write(key, write)

    async def _patiently(self, call: Callable[[], Awaitable[R]]) -> R:
        for _ in range(_RETRIES):
            try:
                return await call()
            except ApiError as error:
                if error.code not in _TRANSIENT:
                    raise
            await asyncio.sleep(_RETRY_DELAY_S)
        return await call()
