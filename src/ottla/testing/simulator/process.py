"""One run of a process: an event loop whose callbacks can all be stopped at once.

It is the asyncio event loop of whatever runs in it. Its time is the machine's own monotonic clock,
which may run a little too fast or too slow. Killing it drops every callback, task and connection as
the operating system would; nothing that it holds is finalised while the run goes on.
"""

import asyncio
import contextvars
import socket
import warnings
from asyncio import AbstractEventLoop, Future, Handle, Task, TimerHandle
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, Unpack

from ottla.storage.faulty_filesystem import PowerLoss
from ottla.testing.simulator.executor import SimulatedExecutor
from ottla.testing.simulator.sockets import SimulatedSocket

if TYPE_CHECKING:
    from ottla.testing.simulator.host import Host
    from ottla.testing.simulator.transport import SimulatedTransport

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Process(AbstractEventLoop):
    def __init__(self, host: "Host") -> None:
        self.host = host
        self.alive = True
        self.paused = False
        self.executor = SimulatedExecutor(self)
        self.connections: dict[SimulatedTransport, None] = {}
        self.listening: dict[SimulatedSocket, None] = {}
        self._scheduler = host.network.scheduler
        self._held: list[Handle] = []  # What became due while it was paused.
        self._readers: dict[int, Handle] = {}
        self._remains: list[object] = []  # After its death, what must not be finalised yet.

    # What befalls it.

    def run(self, handle: Handle) -> None:
        if not self.alive or handle.cancelled():
            return
        if self.paused:
            self._held.append(handle)
            return
        scheduler = self._scheduler
        if scheduler.running is not self:
            scheduler.running = self
            asyncio._set_running_loop(self)
        handle._run()
        self.host.after_step()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        held, self._held = self._held, []
        for handle in held:
            self._scheduler.process_soon(self, handle)

    def kill(self) -> None:
        """At once: no callback of it runs any more."""
        self.alive = False
        self._remains += asyncio.all_tasks(self)
        self._remains += self._held

    def dispose(self) -> None:
        """After the run: let its remains go, quietly."""
        self.alive = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of coroutines that nobody had begun to await.
            for task in (*self._remains, *asyncio.all_tasks(self)):
                if isinstance(task, Task):
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    with suppress(BaseException):
                        task.get_coro().close()
        self._remains.clear()

    # The event loop.

    def time(self) -> float:
        return self.host.monotonic(self._scheduler.now)

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, self, context)
        if self.alive:
            self._scheduler.process_soon(self, handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> TimerHandle:
        handle = TimerHandle(when, callback, args, self, context)
        if self.alive:
            due = max(self.host.scheduler_time(when), self._scheduler.now)
            self._scheduler.process_at(due, self, handle)
        return handle

    def _timer_handle_cancelled(self, _: TimerHandle) -> None:
        pass

    def create_future(self) -> "Future[Any]":
        return Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> "Task[T]":
        return Task(coro, loop=self, name=name, context=context)

    def run_in_executor(
        self,
        executor: Executor | None,
        func: Callable[[Unpack[Ts]], T],
        *args: *Ts,
    ) -> "Future[T]":
        return asyncio.wrap_future((executor or self.executor).submit(func, *args), loop=self)

    def is_running(self) -> bool:
        return self.alive

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not self.alive or isinstance(error, PowerLoss):
            return
        if isinstance(error, AssertionError):
            self._scheduler.fail(error)
        else:
            self.host.on_error(context["message"], error)

    # The network.

    async def getaddrinfo(self, host: Any, port: Any, **_options: int) -> list[Any]:
        address = self.host.network.resolve(str(host))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0))]

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], T], host: str, port: int
    ) -> "tuple[SimulatedTransport, T]":
        transport = await self.host.network.connect(self, host, port)
        protocol = protocol_factory()
        transport.attach(protocol)  # type: ignore[arg-type]
        return transport, protocol

    async def connect_accepted_socket(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], T],
        sock: SimulatedSocket,
        **_options: object,
    ) -> "tuple[SimulatedTransport, T]":
        assert sock.transport is not None
        protocol = protocol_factory()
        sock.transport.attach(protocol)  # type: ignore[arg-type]
        return sock.transport, protocol

    def add_reader(self, fd: int, callback: Callable[[Unpack[Ts]], Any], *args: *Ts) -> None:  # type: ignore[override]
        """Only for sockets that listen."""
        self._readers[fd] = Handle(callback, args, self)
        for listening in self.listening:
            if listening.fileno() == fd and listening.waiting:
                self.on_readable(fd)

    def remove_reader(self, fd: int) -> bool:  # type: ignore[override]
        handle = self._readers.pop(fd, None)
        if handle is not None:
            handle.cancel()
        return handle is not None

    def on_readable(self, fd: int) -> None:
        if self.alive and (handle := self._readers.get(fd)) is not None:
            self._scheduler.process_soon(self, handle)
