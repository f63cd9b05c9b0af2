"""What goes wrong, when, and how it is mended.

Each kind of fault is a method that begins it. It ends by itself after a while; `stop` ends all of
them at once, and everything is well again.
"""

from collections.abc import Callable, Sequence
from typing import Final

from ottla.testing.simulator.host import Host
from ottla.testing.simulator.network import Network, Way
from ottla.testing.simulator.simulated_client import SimulatedClient
from ottla.testing.simulator.simulated_node import SimulatedNode

DOWN_S_MAX = 5.0
PAUSE_S_MAX = 8.0
NETWORK_FAULT_S_MAX = 8.0
DISK_FAULT_S_MAX = 5.0
CLOCK_JUMP_MS_MAX = 60_000
RESTART_AFTER_S = 0.5  # A process that ends is started again, as by systemd.


class Faults:
    def __init__(
        self,
        network: Network,
        nodes: Sequence[SimulatedNode],
        clients: Sequence[SimulatedClient],
        kinds: Sequence[str],
        interval_s: float,
    ) -> None:
        self._scheduler = network.scheduler
        self._network = network
        self._nodes = nodes
        self._clients = clients
        self._kinds: list[Callable[[], None]] = [getattr(self, f"_{kind}") for kind in kinds]
        self._interval_s = interval_s
        self._chance = network.scheduler.chance("faults")
        self._mends: dict[int, Callable[[], None]] = {}  # Of faults that last.
        self._next_id = 0
        self._stopped = False

    def start(self) -> None:
        self._watch()
        if self._kinds:
            self._schedule()

    def stop(self) -> None:
        """Everybody is well, and stays so."""
        self._stopped = True
        for mend in list(self._mends.values()):
            mend()
        self._mends.clear()
        self._scheduler.tell("faults", "end")

    def _schedule(self) -> None:
        delay_s = self._chance.expovariate(1.0 / self._interval_s)
        self._scheduler.call_later(delay_s, self._begin_one)

    def _begin_one(self) -> None:
        if not self._stopped:
            self._chance.choice(self._kinds)()
            self._schedule()

    def _watch(self) -> None:
        """Start again what has ended, but for what is down on purpose."""
        for node in self._nodes:
            if node.host.process is None and not node.held_down:
                node.start()
        self._scheduler.call_later(RESTART_AFTER_S, self._watch)

    def _for_a_while(self, seconds_max: float, mend: Callable[[], None]) -> None:
        self._next_id += 1
        fault_id = self._next_id
        self._mends[fault_id] = mend

        def end() -> None:
            if self._mends.pop(fault_id, None) is not None:
                mend()

        self._scheduler.call_later(self._chance.uniform(0.05, seconds_max), end)

    def _node(self) -> SimulatedNode:
        return self._chance.choice(list(self._nodes))

    def _tell(self, what: str) -> None:
        self._scheduler.tell("faults", what)

    # Processes and machines.

    def _kill(self) -> None:
        node = self._node()
        if node.host.process is not None:
            node.kill()
            self._hold_down(node)

    def _power_loss(self) -> None:
        node = self._node()
        if node.host.process is not None:
            node.power_off()
            self._hold_down(node)

    def _power_loss_in_a_write(self) -> None:
        node = self._node()
        if node.host.process is not None:
            node.host.disk.power_loss_after(self._chance.randrange(12))

    def _restart(self) -> None:
        node = self._node()
        if node.serving:
            node.stop()

    def _pause(self) -> None:
        node = self._node()
        node.pause()
        self._for_a_while(PAUSE_S_MAX, node.resume)

    def _kill_client(self) -> None:
        mortals = [client for client in self._clients if client.mortal]
        if mortals:
            self._chance.choice(mortals).kill()

    def _supersede_client(self) -> None:
        mortals = [client for client in self._clients if client.mortal]
        if mortals:
            earlier = self._chance.choice(mortals).supersede()
            self._for_a_while(PAUSE_S_MAX, earlier.process.resume)

    def _hold_down(self, node: SimulatedNode) -> None:
        node.held_down += 1

        def release() -> None:
            node.held_down -= 1

        self._for_a_while(DOWN_S_MAX, release)

    # The network.

    def _two_hosts(self) -> tuple[Host, Host]:
        one = self._node().host
        others = [node.host for node in self._nodes if node.host is not one]
        return one, self._chance.choice([*others, *[client.host for client in self._clients]])

    def _cut(self) -> None:
        one, other = self._two_hosts()
        ways = self._chance.choice(([(one, other)], [(other, one)], [(one, other), (other, one)]))
        self._tell(f"cut {', '.join(f'{a.name}->{b.name}' for a, b in ways)}")
        for source, target in ways:
            self._network.cut(source, target)

        def mend() -> None:
            self._tell(f"mend {', '.join(f'{a.name}->{b.name}' for a, b in ways)}")
            for source, target in ways:
                self._network.mend(source, target)

        self._for_a_while(NETWORK_FAULT_S_MAX, mend)

    def _reset(self) -> None:
        one, other = self._two_hosts()
        self._tell(f"reset the connections of {one.name} and {other.name}")
        self._network.reset_connections(one, other)

    def _slow_network(self) -> None:
        one, other = self._two_hosts()
        way = self._network.way(one, other)
        way.delay_s = self._chance.choice((0.01, 0.1, 0.5))
        way.loss = self._chance.choice((0.0, 0.1, 0.3))
        self._tell(f"{one.name}->{other.name} takes {way.delay_s} s and loses {way.loss}")

        def mend() -> None:
            way.delay_s, way.loss = Way().delay_s, Way().loss

        self._for_a_while(NETWORK_FAULT_S_MAX, mend)

    # Disks.

    def _slow_disk(self) -> None:
        host = self._node().host
        host.disk_slowness = self._chance.choice((10.0, 200.0, 1_000.0))
        self._tell(f"the disk of {host.name} is {host.disk_slowness} times slower")

        def mend() -> None:
            host.disk_slowness = 1.0

        self._for_a_while(DISK_FAULT_S_MAX, mend)

    def _disk_full(self) -> None:
        disk = self._node().host.disk
        disk.disk_full(self._chance.randrange(20_000))
        self._tell(f"the disk of {self._name_of(disk)} is full")
        self._for_a_while(DISK_FAULT_S_MAX, lambda: disk.disk_full(None))

    def _failing_sync(self) -> None:
        """A disk that failed is replaced or repaired, and the machine started again."""
        node = self._node()
        node.host.disk.fail_next_sync()
        node.disk_failed = True
        life = node.life
        self._tell(f"the next sync of {node} fails")

        def restart() -> None:
            if node.life == life and node.host.process is not None:
                node.power_off()

        self._for_a_while(DISK_FAULT_S_MAX, restart)

    def _name_of(self, disk: object) -> str:
        return next(node.host.name for node in self._nodes if node.host.disk is disk)

    # Clocks.

    def _clock_jump(self) -> None:
        host = self._node().host
        jump_ms = self._chance.randint(-CLOCK_JUMP_MS_MAX, CLOCK_JUMP_MS_MAX)
        host.wall_offset_ms += jump_ms
        self._tell(f"the clock of {host.name} jumps by {jump_ms} ms")


FAULTS: Final = (
    "kill",
    "power_loss",
    "power_loss_in_a_write",
    "restart",
    "pause",
    "kill_client",
    "supersede_client",
    "cut",
    "reset",
    "slow_network",
    "slow_disk",
    "disk_full",
    "failing_sync",
    "clock_jump",
)
