"""What all sessions of one event loop share.

There is one receive buffer. A callback runs to its end before the next one starts, and both uvloop
and asyncio fill the buffer and report it in one go; so a session without an incomplete frame needs
no buffer of its own, and an idle connection costs next to nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING

from ottla.network.budget import SMALL_BYTES, MemoryBudget
from ottla.network.config import NetworkConfig
from ottla.network.connection_rates import ConnectionRates
from ottla.network.counters import NetworkCounters
from ottla.network.durations import ApiCounters
from ottla.network.limits import ConnectionLimits
from ottla.network.partial import KEY_BYTES
from ottla.network.quiet_log import QuietLog
from ottla.network.stalls import SweepClock
from ottla.network.trim import Trimmer
from ottla.network.turns import Turns

if TYPE_CHECKING:
    from ottla.network.session import Session

RECEIVE_BUFFER_BYTES = 262_144
CROWDED_BYTES = 16_384  # Received at a time while many wait for their turn.
SPARE_BYTES_MAX = 2_097_152
SPARE_FACTOR_MAX = 4  # A frame does not use a spare buffer larger than this factor.
MEMORY_LINES_MS = 10_000.0  # Between log lines about a memory shortage.

Dispatch = Callable[["Session", memoryview], None]

logger = logging.getLogger("ottla.network")


class Hub:
    def __init__(
        self,
        config: NetworkConfig,
        dispatch: Dispatch,
        *,
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], float],
        executor: Executor | None = None,
        login_executor: Executor | None = None,
    ) -> None:
        self.config = config
        self.dispatch = dispatch
        self.loop = loop
        self.monotonic_ms = monotonic_ms
        self.executor = executor  # For reads that wait for the disk; None for the loop's own.
        self.login_executor = login_executor  # For slow logins.
        self.counters = NetworkCounters()
        self.unnamed_api = ApiCounters()  # Of requests whose dispatch names no other.
        self.received_ns = 0  # When the bytes being dispatched arrived.
        self.limits = ConnectionLimits(
            config.connections_max,
            config.connections_per_ip_max,
            config.connections_per_ip_overrides,
        )
        self.rates = ConnectionRates(config.quota_windows, config.connection_rate_max, monotonic_ms)
        self.quiet_log = QuietLog(logger, monotonic_ms)
        self.sessions: dict[Session, None] = {}  # In order of arrival.
        self.empty = asyncio.Event()  # There are no sessions.
        self.empty.set()
        self.budget = MemoryBudget(
            config.queued_bytes_max, config.request_bytes_max, self._on_scarce, self._on_wait
        )
        self.sweep_clock = SweepClock(config)
        self.trimmer = Trimmer(monotonic_ms, partial(loop.run_in_executor, executor))
        self.turns = Turns(loop, monotonic_ms, self._on_crowd)
        self._short_since_ms: float | None = None  # Invariant: set while a shortage was logged.
        # A frame that ends with the view may be too short for a key, which is read anyway.
        self.buffer = bytearray(RECEIVE_BUFFER_BYTES + KEY_BYTES)
        self.view = memoryview(self.buffer)[:RECEIVE_BUFFER_BYTES]
        self._spare: bytearray | None = None  # Of a large frame that has been dispatched.
        self.offered = self.view  # What a session without an incomplete frame receives into.
        self._scarce = self._crowded = False

    def add(self, session: "Session") -> None:
        self.sessions[session] = None
        self.counters.connections_open += 1
        self.empty.clear()

    def remove(self, session: "Session") -> None:
        del self.sessions[session]
        self.limits.release(session.peer_address)
        self.counters.connections_open -= 1
        if not self.sessions:
            self.empty.set()

    def _on_scarce(self, scarce: bool) -> None:
        self._scarce = scarce
        self._offer()

    def _on_crowd(self, crowded: bool) -> None:
        self._crowded = crowded
        self._offer()

    def _offer(self) -> None:
        if self._scarce:
            self.offered = self.view[:SMALL_BYTES]
        elif self._crowded:
            self.offered = self.view[:CROWDED_BYTES]
        else:
            self.offered = self.view

    def _on_wait(self) -> None:
        self.counters.memory_waits += 1
        if not self.quiet_log.is_due("memory", MEMORY_LINES_MS):
            return
        largest = max(self.sessions, key=lambda session: session.receiver.held_bytes)
        logger.warning(
            "memory for requests is short: %d of %d bytes are in use (queued.max.request.bytes), "
            "most by %s with %d; connections that want more wait",
            self.budget.used,
            self.budget.limit,
            largest,
            largest.receiver.held_bytes,
        )
        if self._short_since_ms is None:
            self._short_since_ms = self.monotonic_ms()

    def space_after(self, rest: bytes) -> memoryview:
        """Put the rest of an earlier receive at the start, and offer the space behind it."""
        size = len(rest)
        self.buffer[:size] = rest
        return self.view[size : size + len(self.offered)]

    def take_spare(self, size: int) -> bytearray | None:
        """The buffer of an earlier large frame, if there is one of about that size."""
        spare = self._spare
        if spare is not None and size <= len(spare) <= SPARE_FACTOR_MAX * size:
            self._spare = None
            return spare
        return None

    def give_spare(self, buffer: bytearray) -> None:
        """Keep the buffer of a large frame for the next one."""
        if len(buffer) <= SPARE_BYTES_MAX:
            spare = self._spare
            self._spare = buffer if spare is None or len(spare) < len(buffer) else spare

    def close_stalled_sessions(self) -> None:
        """Close sessions that use memory and make no progress."""
        now = self.monotonic_ms()
        patience = self.sweep_clock.patience(now, short=self.budget.short)
        for session in list(self.sessions):
            problem = session.receiver.stall(patience)
            if problem:
                self.counters.connections_closed_stalled += 1
                self.quiet_log.warn_rarely(
                    "stalled", "closing the connection of %s, which stalled: %s", session, problem
                )
                session.abort(problem)
        if self._short_since_ms is not None and not self.budget.short:
            logger.info(
                "memory for requests is sufficient again, after %.0f s",
                (now - self._short_since_ms) / 1000,
            )
            self._short_since_ms = None

    def close_idle_sessions(self) -> None:
        limit = self.config.idle_ms_max
        if limit < 0:
            return
        now = self.monotonic_ms()
        for session in list(self.sessions):
            if not session.closed and session.receiver.idle_ms(now) > limit:
                self.counters.connections_closed_idle += 1
                session.abort("idle")
