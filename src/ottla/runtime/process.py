"""What everything on a node needs of the process that it runs in."""

from asyncio import AbstractEventLoop
from concurrent.futures import Executor

from ottla.protocol.entities import entity
from ottla.runtime.clock import Clock
from ottla.runtime.supervisor import Supervisor


@entity
class Process:
    loop: AbstractEventLoop
    clock: Clock
    executor: Executor  # For what waits for the disk.
    supervisor: Supervisor
