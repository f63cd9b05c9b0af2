"""Work in the background: retention, compaction, checkpoints, flushes by time, late requests."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from ottla.protocol.config import ConfigValues
from ottla.replication.config import REPLICA_LAG_TIME_MAX_MS
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import FlushPolicy
from ottla.runtime.clock import Clock
from ottla.runtime.supervisor import Supervisor
from ottla.storage.broker_config import (
    FLUSH_INTERVAL_MS,
    FLUSH_POLICY,
    LOG_CLEANER_BACKOFF_MS,
    LOG_CLEANER_ENABLE,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
)
from ottla.storage.manager import LogManager

LATE_REQUESTS_INTERVAL_MS = 250
OVERDUE_FLUSHES_INTERVAL_MS = 1_000
REMOVAL_INTERVAL_MS = 1_000
REFUSED_PARTITIONS_INTERVAL_MS = 1000


class Housekeeping:
    """Each kind of work has a task of its own; what waits for the disk runs in a thread."""

    def __init__(
        self,
        values: ConfigValues,
        logs: LogManager,
        replicas: ReplicaManager,
        clock: Clock,
        executor: Executor,
    ) -> None:
        self._values = values
        self._logs = logs
        self._replicas = replicas
        self._clock = clock
        self._executor = executor

    def start(self, supervisor: Supervisor) -> None:
        values = self._values
        supervisor.start("late requests", self._expire_late_requests())
        supervisor.start("flushes by time", self._flush_overdue())
        supervisor.start("in-sync sets", self._shrink_in_sync_sets())
        supervisor.start("refused partitions", self._retry_refused_partitions())
        self._every(supervisor, values[LOG_RETENTION_CHECK_INTERVAL_MS], self._logs.retain)
        self._every(supervisor, REMOVAL_INTERVAL_MS, self._logs.remove_discarded)
        self._every(
            supervisor, values[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS], self._logs.checkpoint
        )
        if values[LOG_CLEANER_ENABLE]:
            self._every(supervisor, values[LOG_CLEANER_BACKOFF_MS], self._logs.clean)
        if FlushPolicy(values[FLUSH_POLICY]) is FlushPolicy.INTERVAL:
            self._every(supervisor, values[FLUSH_INTERVAL_MS], self._logs.flush)

    def _every(self, supervisor: Supervisor, interval_ms: int, work: Callable[[], object]) -> None:
        supervisor.start(work.__name__, self._repeat(interval_ms / 1000, work))

    async def _repeat(self, interval_s: float, work: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(interval_s)
            await loop.run_in_executor(self._executor, work)

    async def _expire_late_requests(self) -> None:
        while True:
            await asyncio.sleep(LATE_REQUESTS_INTERVAL_MS / 1000)
            self._replicas.delayed_produces.expire(self._clock.monotonic_ms())

    async def _flush_overdue(self) -> None:
        while True:
            await asyncio.sleep(OVERDUE_FLUSHES_INTERVAL_MS / 1000)
            self._replicas.flush_overdue(self._clock.monotonic_ms())

    async def _shrink_in_sync_sets(self) -> None:
        while True:
            await asyncio.sleep(self._values[REPLICA_LAG_TIME_MAX_MS] / 2 / 1000)
            self._replicas.shrink_in_sync_sets()

    async def _retry_refused_partitions(self) -> None:
        while True:
            await asyncio.sleep(REFUSED_PARTITIONS_INTERVAL_MS / 1000)
            self._replicas.retry_refused()
