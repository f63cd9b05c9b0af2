"""All listeners of a broker, and the sweeps that close idle and stalled connections."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from ottla.network.config import NetworkConfig
from ottla.network.connection_rates import ConnectionRates
from ottla.network.counters import NetworkCounters
from ottla.network.endpoints import Endpoint
from ottla.network.limits import ConnectionLimits
from ottla.network.listener import Listener, NewSocket
from ottla.network.listener_security import ListenerSecurity
from ottla.network.session import Session
from ottla.network.session_hub import Dispatch, Hub

SWEEPS_PER_IDLE_TIME = 4
SWEEP_INTERVAL_S_MAX = 30.0


class Server:
    """`dispatch` is called for every frame; see session.py for what it may do."""

    def __init__(
        self,
        config: NetworkConfig,
        dispatch: Dispatch,
        *,
        monotonic_ms: Callable[[], float],
        executor: Executor | None = None,
        login_executor: Executor | None = None,
        security: Mapping[str, ListenerSecurity] | None = None,
        new_socket: NewSocket = socket.socket,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._hub = Hub(
            config,
            dispatch,
            loop=self._loop,
            monotonic_ms=monotonic_ms,
            executor=executor,
            login_executor=login_executor,
        )
        locks = security or {}
        for lock in locks.values():
            lock.use(self._hub)
        self._listeners = [
            Listener(self._hub, endpoint, locks.get(endpoint.listener_name), new_socket)
            for endpoint in config.listeners
        ]
        self._sweep: asyncio.TimerHandle | None = None
        self._stall_sweep: asyncio.TimerHandle | None = None

    @property
    def counters(self) -> NetworkCounters:
        return self._hub.counters

    @property
    def connection_rates(self) -> ConnectionRates:
        return self._hub.rates

    @property
    def limits(self) -> ConnectionLimits:
        return self._hub.limits

    @property
    def queued_bytes(self) -> int:
        """The memory of requests and responses of all connections, as counted for its limit."""
        return self._hub.budget.used

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where it listens; after `bind`, with the bound ports."""
        return tuple(listener.endpoint for listener in self._listeners)

    @property
    def sessions(self) -> tuple[Session, ...]:
        return tuple(self._hub.sessions)

    @property
    def dispatch(self) -> Dispatch:
        """The current dispatch function."""
        return self._hub.dispatch

    def use(self, dispatch: Dispatch) -> None:
        """Switch the dispatch function."""
        self._hub.dispatch = dispatch

    async def bind(self) -> None:
        """Raises ListenError if one of the listeners cannot be bound; then none is.

        From now on the ports are known, and clients that connect wait until `start`.
        """
        try:
            for listener in self._listeners:
                await listener.bind()
        except OSError:
            await self.stop_accepting()
            raise

    def start(self) -> None:
        for listener in self._listeners:
            listener.start()
        if self._stall_sweep is None:
            self._schedule_sweep()
            self._on_stall_sweep()

    async def stop_accepting(self) -> None:
        for listener in self._listeners:
            await listener.stop()

    async def stop(self, grace_s: float = 1.0) -> None:
        """Close every connection once its transport is empty, at the latest after `grace_s`."""
        await self.stop_accepting()
        for sweep in (self._sweep, self._stall_sweep):
            if sweep is not None:
                sweep.cancel()
        for session in self.sessions:
            session.close("the broker stops")
        try:
            await asyncio.wait_for(self._hub.empty.wait(), grace_s)
        except TimeoutError:
            for session in self.sessions:
                session.abort("the broker stops")
            await self._hub.empty.wait()

    def close_idle_sessions(self) -> None:
        self._hub.close_idle_sessions()

    def close_stalled_sessions(self) -> None:
        self._hub.close_stalled_sessions()

    def _schedule_sweep(self) -> None:
        idle_ms_max = self._hub.config.idle_ms_max
        if idle_ms_max >= 0:
            interval_s = min(idle_ms_max / SWEEPS_PER_IDLE_TIME / 1000, SWEEP_INTERVAL_S_MAX)
            self._sweep = self._loop.call_later(max(interval_s, 0.01), self._on_sweep)

    def _on_sweep(self) -> None:
        self._hub.close_idle_sessions()
        self._schedule_sweep()

    def _on_stall_sweep(self) -> None:
        self._hub.close_stalled_sessions()
        self._hub.trimmer.maybe_trim()
        interval_s = self._hub.sweep_clock.interval_s
        self._stall_sweep = self._loop.call_later(interval_s, self._on_stall_sweep)
