"""What the leaders of share-partitions and the group coordinator ask of the share coordinators.

Every method answers as the share coordinator's API of that name does, so that a call to a
coordinator on another broker can take the place of the one in this process. Writes of a
share-partition take effect in the order in which they were called.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable
from typing import Final, TypeVar

from ottla.groups.share.state_coordinator import (
    SharePartitionKey,
    ShareState,
    ShareStateMachine,
    StateWrite,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.coordinators import Coordinators
from ottla.runtime.machine_runtime import Operation

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
    def __init__(self, coordinators: Coordinators[ShareStateMachine]) -> None:
        self._coordinators = coordinators

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        await self._patiently(
            lambda: self._submit(
                key,
                lambda machine, now_ms: machine.initialize(key, state_epoch, start_offset, now_ms),
            )
        )

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareState:
        return await self._patiently(
            lambda: self._submit(
                key, lambda machine, now_ms: machine.read(key, leader_epoch, now_ms)
            )
        )

    async def read_summary(self, key: SharePartitionKey) -> ShareState:
        return await self._patiently(
            lambda: self._submit(key, lambda machine, _: machine.read_summary(key))
        )

    async def delete(self, key: SharePartitionKey) -> None:
        await self._patiently(lambda: self._submit(key, lambda machine, _: machine.delete(key)))

    def write(self, key: SharePartitionKey, write: StateWrite) -> "Future[None]":
        """At once: who waits for a coordinator could be overtaken by a later write."""
        return self._submit(key, lambda machine, now_ms: machine.write(key, write, now_ms))

    def _submit(
        self, key: SharePartitionKey, operation: Operation[ShareStateMachine, R]
    ) -> "Future[R]":
        return self._coordinators.find(key.coordinator_key).submit(operation)

    async def _patiently(self, call: "Callable[[], Future[R]]") -> R:
        """A coordinator that is still loading is given some time."""
        for _ in range(_RETRIES):
            try:
                return await call()
            except ApiError as error:
                if error.code not in _TRANSIENT:
                    raise
            await asyncio.sleep(_RETRY_DELAY_S)
        return await call()
