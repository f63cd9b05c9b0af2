"""What everything on a node needs from its process."""

from asyncio import AbstractEventLoop
from concurrent.futures import Executor

from ottla.protocol.entities import entity
from ottla.runtime.clock import Clock
from ottla.runtime.supervisor import Supervisor


@entity
class Process:
    loop: AbstractEventLoop
    clock: Clock
    executor: Executor  # For work that waits for the disk.
    supervisor: Supervisor
