"""A machine: its clock, its disk, its power, and the process that runs on it.

It has two clocks. The monotonic one runs at the machine's own rate and starts anywhere; the wall
clock is offset from it, and can jump.
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.testing.simulator.process import Process
from ottla.testing.simulator.violation import Violation

if TYPE_CHECKING:
    from ottla.testing.simulator.network import Network

EPOCH_MS = 1_700_000_000_000  # When simulated time begins.
DRIFT_MAX = 0.01
DISK_DELAY_S = 0.0005
SLOW_CHANCE = 0.01
SLOW_FACTOR = 50.0


class Host:
    def __init__(self, name: str, network: "Network", *, drift_max: float = DRIFT_MAX) -> None:
        self.name = name
        self.network = network
        self.scheduler = network.scheduler
        self.address = network.add(self)
        self.up = True
        self.process: Process | None = None
        self.wall_offset_ms = 0.0
        self.disk_slowness = 1.0
        self.log_lines_count = 0  # In all lives of its process.
        self.on_death: Callable[[], object] = lambda: None
        self._chance = self.scheduler.chance(f"host {name}")
        self._rate = 1.0 + self._chance.uniform(-drift_max, drift_max)
        self._booted_s = self._chance.uniform(0.0, 1_000_000.0)
        self.disk = self._new_disk()
        self._dead: list[Process] = []

    # Its clocks.

    def monotonic(self, now: float) -> float:
        return self._booted_s + now * self._rate

    def scheduler_time(self, monotonic: float) -> float:
        return (monotonic - self._booted_s) / self._rate

    def now_ms(self) -> int:
        elapsed_ms = self.scheduler.now * self._rate * 1000.0
        return int(EPOCH_MS + elapsed_ms + self.wall_offset_ms)

    def monotonic_ms(self) -> float:
        return self.monotonic(self.scheduler.now) * 1000.0

    def random(self) -> random.Random:
        """Randomness for a process, derived from the seed."""
        return random.Random(self._chance.getrandbits(64))

    def disk_delay(self) -> float:
        delay_s = DISK_DELAY_S * self._chance.expovariate(1.0) * self.disk_slowness
        return delay_s * SLOW_FACTOR if self._chance.random() < SLOW_CHANCE else delay_s

    # What befalls it.

    def start_process(self) -> Process:
        assert self.process is None
        if not self.up:
            self.up = True
            self.network.on_host_up(self)
        self.process = Process(self)  # type: ignore[abstract]  # What nobody calls is missing.
        return self.process

    def kill(self) -> None:
        """The process dies; the machine and everything written survive."""
        self._end_process(machine_lives=True)
        self.disk.kill()

    def power_off(self) -> None:
        """The machine stops at once, and its disk loses what was not synced."""
        self.up = False
        self._end_process(machine_lives=False)
        self.disk.crash()

    def replace_disk(self) -> None:
        """Replace the disk with an empty one, while the machine is off."""
        self.disk = self._new_disk()

    def _new_disk(self) -> FaultyFilesystem:
        return FaultyFilesystem(self._chance.getrandbits(64), self.now_ms)

    def after_step(self) -> None:
        if self.disk.powered_off:
            self.scheduler.tell(self.name, "loses power in the middle of a write")
            self.power_off()
            self.on_death()

    def on_error(self, message: str, error: BaseException | None) -> None:
        self.scheduler.fail(error or Violation(f"{self.name}: {message}"))

    def dispose(self) -> None:
        """After the run."""
        if self.process is not None:
            self._dead.append(self.process)
        for process in self._dead:
            process.dispose()
        self._dead.clear()

    def _end_process(self, *, machine_lives: bool) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        self._dead.append(process)
        for listening in list(process.listening):
            self.network.unbind(listening)
        for connection in list(process.connections):
            connection.on_process_death(machine_lives=machine_lives)
