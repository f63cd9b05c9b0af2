"""One attempt at a call to the share coordinator of a share-partition.

The coordinator is in this process or on another broker; its methods behave like its APIs of the
same names, and raise ApiError. A writer's writes take effect in the order of the calls, and none
after one that failed.
"""

from asyncio import Future
from collections.abc import Awaitable
from typing import Protocol

from ottla.coordination.coordinators import Coordinators
from ottla.groups.share.parked import ParkedChange
from ottla.groups.share.state_coordinator import (
    NO_WRITER,
    SharePartitionKey,
    ShareState,
    ShareStateMachine,
    StateWrite,
)


class ShareCoordinator(Protocol):
    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> Awaitable[None]: ...

    def read(
        self, key: SharePartitionKey, leader_epoch: int, writer: int = NO_WRITER
    ) -> Awaitable[ShareState]: ...

    def read_parked(
        self, key: SharePartitionKey, leader_epoch: int, first_offset: int
    ) -> Awaitable[ParkedChange]: ...

    def read_summary(self, key: SharePartitionKey) -> Awaitable[ShareState]: ...

    def write(self, key: SharePartitionKey, write: StateWrite) -> "Future[None]": ...

    def delete(self, key: SharePartitionKey) -> Awaitable[None]: ...


class LocalShareCoordinator:
    def __init__(self, coordinators: Coordinators[ShareStateMachine]) -> None:
        self._coordinators = coordinators

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> "Future[None]":
        return self._coordinators.find(key.coordinator_key).submit(
            lambda machine, now_ms: machine.initialize(key, state_epoch, start_offset, now_ms)
        )

    def read(
        self, key: SharePartitionKey, leader_epoch: int, writer: int = NO_WRITER
    ) -> "Future[ShareState]":
        return self._coordinators.find(key.coordinator_key).submit(
            lambda machine, now_ms: machine.read(key, leader_epoch, now_ms, writer)
        )

    def read_parked(
        self, key: SharePartitionKey, leader_epoch: int, first_offset: int
    ) -> "Future[ParkedChange]":
        return self._coordinators.find(key.coordinator_key).submit(
            lambda machine, _: machine.read_parked(key, leader_epoch, first_offset)
        )

    def read_summary(self, key: SharePartitionKey) -> "Future[ShareState]":
        return self._coordinators.find(key.coordinator_key).submit(
            lambda machine, _: machine.read_summary(key)
        )

    def write(self, key: SharePartitionKey, write: StateWrite) -> "Future[None]":
        return self._coordinators.find(key.coordinator_key).submit(
            lambda machine, now_ms: machine.write(key, write, now_ms)
        )

    def delete(self, key: SharePartitionKey) -> "Future[None]":
        return self._coordinators.find(key.coordinator_key).submit(
            lambda machine, _: machine.delete(key)
        )
