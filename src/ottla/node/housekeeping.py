"""Background work: retention, compaction, scrubbing, checkpoints, flushes, late requests."""

import asyncio
from collections.abc import Callable

from ottla.node.node_parts import Parts
from ottla.replication.config import REPLICA_LAG_TIME_MAX_MS
from ottla.replication.damaged_replicas import DamagedReplicas
from ottla.replication.partition import FlushPolicy
from ottla.storage.broker_config import (
    FLUSH_INTERVAL_MS,
    FLUSH_POLICY,
    LOG_CLEANER_BACKOFF_MS,
    LOG_CLEANER_ENABLE,
    LOG_CLEANER_THREADS,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
    PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS,
)
from ottla.storage.manager import SCRUBS_PER_SECOND

LATE_REQUESTS_INTERVAL_MS = 250  # While a produce is waiting.
ROUND_INTERVAL_MS = 1_000
SCRUB_INTERVAL_MS = 1_000 / SCRUBS_PER_SECOND


class Housekeeping:
    """Each kind of work has its own task; what waits for the disk runs in a thread.

    Tasks wake together, and only if there may be something to do: an idle broker sleeps.
    """

    def __init__(self, parts: Parts, damaged: DamagedReplicas) -> None:
        self._configs = parts.configs
        self._logs = parts.logs
        self._replicas = parts.replicas
        self._process = parts.process
        self._damaged = damaged
        self._began_s = 0.0

    def start(self) -> None:
        self._began_s = self._process.loop.time()
        values = self._configs.broker_values()  # Of keys that are not dynamic.
        logs, replicas, clock = self._logs, self._replicas, self._process.clock
        self._process.supervisor.start("late requests", self._expire_late_requests())
        self._process.supervisor.start("scrub", self._scrub())
        self._every(
            "flushes by time",
            ROUND_INTERVAL_MS,
            lambda: replicas.flush_overdue(clock.monotonic_ms()),
        )
        lag_ms = values[REPLICA_LAG_TIME_MAX_MS]
        self._every("in-sync sets", lag_ms / 2, replicas.shrink_in_sync_sets)
        self._every("refused partitions", ROUND_INTERVAL_MS, replicas.retry_refused)
        self._every_in_thread(ROUND_INTERVAL_MS, self._look_at_directories)
        self._every_in_thread(values[LOG_RETENTION_CHECK_INTERVAL_MS], logs.retain)
        self._every_in_thread(
            values[PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS], logs.expire_producers
        )
        self._every_in_thread(values[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS], logs.checkpoint)
        if values[LOG_CLEANER_ENABLE]:
            self._every_in_thread(
                lambda: self._configs.broker_values()[LOG_CLEANER_BACKOFF_MS], self._clean
            )
        if FlushPolicy(values[FLUSH_POLICY]) is FlushPolicy.INTERVAL:
            self._every_in_thread(values[FLUSH_INTERVAL_MS], logs.flush)

    async def _sleep(self, interval_ms: float) -> None:
        """Until a multiple of the interval since the start, the one nearest to an interval away."""
        interval_s = max(interval_ms, 1) / 1000
        left_s = interval_s - (self._process.loop.time() - self._began_s) % interval_s
        await asyncio.sleep(left_s if left_s > interval_s / 2 else left_s + interval_s)

    async def _expire_late_requests(self) -> None:
        delayed_produces = self._replicas.delayed_produces
        while True:
            waiting = asyncio.Event()
            delayed_produces.notify(waiting.set)
            await waiting.wait()
            await self._sleep(LATE_REQUESTS_INTERVAL_MS)
            delayed_produces.expire(self._process.clock.monotonic_ms())

    async def _scrub(self) -> None:
        while True:
            await self._sleep(SCRUB_INTERVAL_MS if self._logs.is_scrub_due else ROUND_INTERVAL_MS)
            if self._logs.is_scrub_due:
                await self._process.in_thread(self._logs.scrub)
            self._damaged.look()

    def _look_at_directories(self) -> None:
        self._logs.log_dirs.look_for_room()
        self._logs.log_dirs.check()
        self._logs.removals.remove_due()

    def _every(self, name: str, interval_ms: float, work: Callable[[], object]) -> None:
        async def repeat() -> None:
            while True:
                await self._sleep(interval_ms)
                work()

        self._process.supervisor.start(name, repeat())

    def _clean(self) -> None:
        """Without threads there is no compaction."""
        if self._configs.broker_values()[LOG_CLEANER_THREADS]:
            self._logs.clean()

    def _every_in_thread(
        self, interval_ms: float | Callable[[], float], work: Callable[[], object]
    ) -> None:
        async def repeat() -> None:
            while True:
                await self._sleep(interval_ms() if callable(interval_ms) else interval_ms)
                await self._process.in_thread(work)

        self._process.supervisor.start(work.__name__, repeat())
