"""What everything on a node needs from its process."""

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple

from ottla.protocol.entities import entity
from ottla.runtime.clock import Clock
from ottla.runtime.supervisor import Supervisor

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@entity
class Process:
    loop: AbstractEventLoop
    clock: Clock
    executor: Executor  # For work that waits for the disk.
    supervisor: Supervisor

    def in_thread(self, work: Callable[[*Ts], T], *arguments: *Ts) -> "Future[T]":
        """Do what may wait for the disk."""
        return self.loop.run_in_executor(self.executor, work, *arguments)
