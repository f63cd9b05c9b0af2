"""The coordinators on this broker: one machine for each partition of an internal topic it leads.

A partition's machine is loaded when this broker becomes its leader and unloaded when it no longer
leads. Clients are answered accordingly:

    another broker leads        NOT_COORDINATOR: ask FindCoordinator again
    the log is being read       COORDINATOR_LOAD_IN_PROGRESS: retry
    the log cannot be read      COORDINATOR_NOT_AVAILABLE, until the leadership moves
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Generic, TypeVar

from ottla.coordination.partition_commit_log import PartitionCommitLog
from ottla.machine.catalog import TopicCatalog
from ottla.machine.contract import Machine, RecordCodec, Timers
from ottla.machine.partitioning import partition_for
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.replication.manager import LeadershipListener
from ottla.replication.partition import Partition
from ottla.runtime.machine_runtime import MachineRuntime, Perform
from ottla.runtime.process import Process
from ottla.storage.errors import CorruptLog, StorageError

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=Machine)

_UNREADABLE = (ValueError, OSError, StorageError, CorruptLog, ApiError)


class _Coordinator(Generic[M]):
    __slots__ = ("failure", "loading", "runtime")

    def __init__(self, runtime: MachineRuntime[M]) -> None:
        self.runtime = runtime
        self.loading: asyncio.Task[None] | None = None
        self.failure: ApiError | None = None  # Why it is unavailable.


@dataclass(slots=True, kw_only=True, eq=False)
class Coordinators(Generic[M]):
    """The factories are called only when there is something to coordinate."""

    topic: str
    catalog: TopicCatalog
    create_machine: Callable[[Timers], M]
    create_codec: Callable[[], RecordCodec]
    process: Process
    perform: Perform | None = None  # Starts the effects of results, if the machine has any.
    write_timeout_ms: int | None = None
    _led: dict[int, _Coordinator[M]] = field(init=False, default_factory=dict)  # By partition.

    @property
    def leadership_listener(self) -> LeadershipListener:
        return LeadershipListener(self._on_elected, self._on_resigning)

    def partition_of(self, key: str) -> int | None:
        """The partition of a key's coordinator; None while the topic does not exist."""
        count = self.catalog.partition_count(self.topic)
        return partition_for(key, count) if count else None

    def find(self, key: str) -> MachineRuntime[M]:
        """The coordinator of a key, if it is here; it may still be loading."""
        return self.at(self.partition_of(key))

    def at(self, partition: int | None) -> MachineRuntime[M]:
        """The coordinator on a partition, if it is here."""
        coordinator = None if partition is None else self._led.get(partition)
        if coordinator is None:
            raise ApiError(ErrorCode.not_coordinator, "another broker coordinates this")
        if coordinator.failure is not None:
            raise coordinator.failure
        return coordinator.runtime

    def is_served(self, partition: int) -> bool:
        """Whether a partition's coordinator is here; it may still be loading."""
        coordinator = self._led.get(partition)
        return coordinator is not None and coordinator.failure is None

    def all(self) -> Iterator[MachineRuntime[M]]:
        """The available coordinators, loading or loaded."""
        for coordinator in list(self._led.values()):
            if coordinator.failure is None:
                yield coordinator.runtime

    def _on_elected(self, partition: Partition) -> None:
        topic, index = partition.log.topic_partition
        if topic != self.topic:
            return
        process = self.process
        runtime = MachineRuntime(
            self.create_machine,
            self.create_codec(),
            PartitionCommitLog(partition, process.loop, process.executor),
            process.clock,
            process.loop,
            name=f"{topic}-{index}",
            on_failure=lambda error: self._on_unreadable(index, coordinator, error),
            perform=self.perform,
            write_timeout_ms=self.write_timeout_ms,
        )
        coordinator = self._led[index] = _Coordinator(runtime)
        coordinator.loading = process.supervisor.start(
            f"load {topic}-{index}", self._load(index, coordinator)
        )

    def _on_resigning(self, partition: Partition) -> None:
        topic, index = partition.log.topic_partition
        coordinator = self._led.pop(index, None) if topic == self.topic else None
        if coordinator is None:
            return
        if coordinator.loading is not None:
            coordinator.loading.cancel()
        coordinator.runtime.unload(
            ApiError(ErrorCode.not_coordinator, "another broker coordinates this now")
        )

    async def _load(self, index: int, coordinator: _Coordinator[M]) -> None:
        started_ms = self.process.clock.monotonic_ms()
        try:
            await coordinator.runtime.load()
        except _UNREADABLE as error:
            self._on_unreadable(index, coordinator, error)
        finally:
            coordinator.loading = None
        took_ms = self.process.clock.monotonic_ms() - started_ms
        if took_ms >= _SLOW_LOAD_MS:
            logger.info("loaded %s-%d in %d ms", self.topic, index, took_ms)

    def _on_unreadable(
        self, index: int, coordinator: _Coordinator[M], error: BaseException
    ) -> None:
        logger.error("%s-%d cannot be loaded: %s", self.topic, index, error)
        coordinator.failure = ApiError(
            ErrorCode.coordinator_not_available, f"the coordinator cannot be loaded: {error}"
        )


_SLOW_LOAD_MS = 1000
