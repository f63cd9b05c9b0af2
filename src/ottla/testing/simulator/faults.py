"""What goes wrong, when, and how it is mended.

Each kind of fault is a method that begins it, and says whether it could. It ends by itself after a
while; `stop` ends all of them at once, and everything is well again.
"""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Final

from ottla.testing.simulator.host import Host
from ottla.testing.simulator.membership import Membership
from ottla.testing.simulator.network import Network, Way
from ottla.testing.simulator.profile import Profile
from ottla.testing.simulator.simulated_client import SimulatedClient
from ottla.testing.simulator.simulated_node import SimulatedNode

DOWN_S_MAX = 5.0
PAUSE_S_MAX = 8.0
NETWORK_FAULT_S_MAX = 8.0
DISK_FAULT_S_MAX = 5.0
CLOCK_JUMP_MS_MAX = 60_000
CLIENT_CHANCE = 0.4  # That trouble with the network is between a node and a client.
EVERYWHERE_CHANCE = 0.5
NODES_MIN = 3  # For a disk to be lost without what is on it.
RESTART_AFTER_S = 0.5  # A process that ends is started again, as by systemd.


class Faults:
    def __init__(
        self,
        network: Network,
        membership: Membership,
        clients: Sequence[SimulatedClient],
        profile: Profile,
    ) -> None:
        self._scheduler = network.scheduler
        self._network = network
        self._membership = membership
        self._nodes = membership.nodes
        self._clients = clients
        self._kinds = profile.faults
        self._interval_s = profile.fault_interval_s
        self._absent_count = profile.absent_count
        self._chance = network.scheduler.chance("faults")
        self._mends: dict[int, Callable[[], None]] = {}  # Of faults that last.
        self._next_id = 0
        self._stopped = False
        self._wall_offset_max_ms = 0.0  # Of any clock, ever.

    def start(self) -> None:
        for node in self._chance.sample(self._nodes, self._absent_count):
            self._take_away(node)
        self._watch()
        if self._kinds:
            self._schedule()

    def stop(self) -> None:
        """Everybody is well, and stays so."""
        self._stopped = True
        for mend in list(self._mends.values()):
            mend()
        self._mends.clear()
        self._set_clocks()
        self._scheduler.tell("faults", "end")

    def _set_clocks(self) -> None:
        """All agree, and none says less than any has said.

        What is to wait until a time by one clock waits for as long as another is behind; that is
        no fault, but would take too long.
        """
        for node in self._nodes:
            node.host.wall_offset_ms = self._wall_offset_max_ms

    def _schedule(self) -> None:
        delay_s = self._chance.expovariate(1.0 / self._interval_s)
        self._scheduler.call_later(delay_s, self._begin_one)

    def _begin_one(self) -> None:
        if not self._stopped:
            kind = self._chance.choice(self._kinds)
            if getattr(self, f"_{kind}")():
                self._scheduler.count(f"fault: {kind}")
            self._schedule()

    def _watch(self) -> None:
        """Start again what has ended, but for what is down on purpose."""
        for node in self._nodes:
            if node.host.process is None and not node.held_down:
                node.start()
        self._scheduler.call_later(RESTART_AFTER_S, self._watch)

    def _until_the_end(self, mend: Callable[[], None]) -> int:
        self._next_id += 1
        self._mends[self._next_id] = mend
        return self._next_id

    def _for_a_while(self, seconds_max: float, mend: Callable[[], None]) -> None:
        fault_id = self._until_the_end(mend)

        def end() -> None:
            if self._mends.pop(fault_id, None) is not None:
                mend()

        self._scheduler.call_later(self._chance.uniform(0.05, seconds_max), end)

    def _node(self) -> SimulatedNode:
        return self._chance.choice(self._nodes)

    def _running_node(self) -> SimulatedNode | None:
        node = self._node()
        return None if node.host.process is None else node

    def _tell(self, what: str) -> None:
        self._scheduler.tell("faults", what)

    # Processes and machines.

    def _kill(self) -> bool:
        node = self._running_node()
        if node is None:
            return False
        node.kill()
        self._hold_down(node)
        return True

    def _take_away(self, node: SimulatedNode) -> None:
        """Until all is well again."""
        node.kill()
        self._scheduler.count("fault: absence")
        node.held_down += 1
        self._until_the_end(lambda: self._let_return(node))

    def _let_return(self, node: SimulatedNode) -> None:
        node.held_down -= 1

    def _power_loss(self) -> bool:
        node = self._running_node()
        if node is None:
            return False
        node.power_off()
        self._hold_down(node)
        return True

    def _power_loss_in_a_write(self) -> bool:
        node = self._running_node()
        if node is None:
            return False
        node.host.disk.power_loss_after(self._chance.randrange(12))
        return True

    def _power_loss_everywhere(self) -> bool:
        for node in self._nodes:
            if node.host.process is not None:
                node.power_off()
                self._hold_down(node)
        return True

    def _lose_directory(self) -> bool:
        """Of one node at a time, and only when the others have all that it has."""
        node = self._running_node()
        membership = self._membership
        if node is None or len(self._nodes) < NODES_MIN:
            return False
        if not membership.is_whole or not membership.has_copies:
            return False
        node.lose_directory()
        self._hold_down(node)
        return True

    def _flip_bits(self) -> bool:
        """On the disk of one node at a time, while it is down, when the others have what it has."""
        node = self._running_node()
        membership = self._membership
        if node is None or not node.serving or len(self._nodes) < NODES_MIN:
            return False
        if not membership.is_whole or not membership.has_copies:
            return False
        count = self._chance.randint(1, 3)
        node.held_down += 1
        self._chance.choice((node.kill, node.power_off, node.stop))()
        self._flip_when_down(node, count)
        return True

    def _flip_when_down(self, node: SimulatedNode, count: int) -> None:
        if node.host.process is not None:
            self._scheduler.call_later(0.1, lambda: self._flip_when_down(node, count))
            return
        for _ in range(count):
            node.flip_bit(self._chance)
        self._for_a_while(DOWN_S_MAX, lambda: self._let_return(node))

    def _restart(self) -> bool:
        node = self._running_node()
        if node is None or not node.serving:
            return False
        node.stop()
        return True

    def _pause(self) -> bool:
        node = self._running_node()
        if node is None:
            return False
        node.pause()
        self._for_a_while(PAUSE_S_MAX, node.resume)
        return True

    def _kill_client(self) -> bool:
        mortals = [client for client in self._clients if client.mortal]
        if mortals:
            self._chance.choice(mortals).kill()
        return bool(mortals)

    def _supersede_client(self) -> bool:
        mortals = [client for client in self._clients if client.mortal]
        if mortals:
            earlier = self._chance.choice(mortals).supersede()
            self._for_a_while(PAUSE_S_MAX, earlier.process.resume)
        return bool(mortals)

    def _hold_down(self, node: SimulatedNode) -> None:
        node.held_down += 1
        self._for_a_while(DOWN_S_MAX, lambda: self._let_return(node))

    # The network.

    def _two_hosts(self) -> tuple[Host, Host]:
        """A node, and another one or a client."""
        host = self._node().host
        others = [node.host for node in self._nodes if node.host is not host]
        if not others or self._chance.random() < CLIENT_CHANCE:
            others = [client.host for client in self._clients]
        return host, self._chance.choice(others)

    def _all_ways(self) -> list[tuple[Host, Host]]:
        """Between nodes."""
        return list(permutations([node.host for node in self._nodes], 2))

    def _cut(self) -> bool:
        host, other = self._two_hosts()
        ways = self._chance.choice(
            ([(host, other)], [(other, host)], [(host, other), (other, host)])
        )
        self._tell(f"cut {', '.join(f'{a.name}->{b.name}' for a, b in ways)}")
        for source, target in ways:
            self._network.cut(source, target)

        def mend() -> None:
            self._tell(f"mend {', '.join(f'{a.name}->{b.name}' for a, b in ways)}")
            for source, target in ways:
                self._network.mend(source, target)

        self._for_a_while(NETWORK_FAULT_S_MAX, mend)
        return True

    def _isolate(self) -> bool:
        """A node from all the others; clients may still reach it."""
        host = self._node().host
        others = [node.host for node in self._nodes if node.host is not host]
        self._tell(f"isolate {host.name}")
        for other in others:
            self._network.cut(host, other)
            self._network.cut(other, host)

        def mend() -> None:
            self._tell(f"{host.name} is isolated no more")
            for other in others:
                self._network.mend(host, other)
                self._network.mend(other, host)

        self._for_a_while(NETWORK_FAULT_S_MAX, mend)
        return True

    def _reset(self) -> bool:
        host, other = self._two_hosts()
        self._tell(f"reset the connections of {host.name} and {other.name}")
        self._network.reset_connections(host, other)
        return True

    def _slow_network(self) -> bool:
        """One way, or all ways between nodes."""
        everywhere = self._chance.random() < EVERYWHERE_CHANCE
        pairs = self._all_ways() if everywhere else [self._two_hosts()]
        delay_s = self._chance.choice((0.01, 0.04, 0.1, 0.5))
        loss = self._chance.choice((0.0, 0.1, 0.3))
        for source, target in pairs:
            way = self._network.way(source, target)
            way.delay_s, way.loss = delay_s, loss
            self._tell(f"{source.name}->{target.name} takes {delay_s} s and loses {loss}")

        def mend() -> None:
            for source, target in pairs:
                way = self._network.way(source, target)
                way.delay_s, way.loss = Way().delay_s, Way().loss

        self._for_a_while(NETWORK_FAULT_S_MAX, mend)
        return True

    # Disks.

    def _slow_disk(self) -> bool:
        host = self._node().host
        host.disk_slowness = self._chance.choice((10.0, 200.0, 1_000.0))
        self._tell(f"the disk of {host.name} is {host.disk_slowness} times slower")

        def mend() -> None:
            host.disk_slowness = 1.0

        self._for_a_while(DISK_FAULT_S_MAX, mend)
        return True

    def _disk_full(self) -> bool:
        disk = self._node().host.disk
        disk.disk_full(self._chance.randrange(20_000))
        self._tell(f"the disk of {self._name_of(disk)} is full")
        self._for_a_while(DISK_FAULT_S_MAX, lambda: disk.disk_full(None))
        return True

    def _failing_sync(self) -> bool:
        """A process that goes on without its disk is ended after a while, or the machine is."""
        node = self._node()
        node.host.disk.fail_next_sync()
        life = node.life
        self._tell(f"the next sync of {node} fails")

        def restart() -> None:
            if node.life == life and node.host.process is not None:
                self._chance.choice((node.kill, node.power_off))()

        self._for_a_while(DISK_FAULT_S_MAX, restart)
        return True

    def _name_of(self, disk: object) -> str:
        return next(node.host.name for node in self._nodes if node.host.disk is disk)

    # Clocks.

    def _clock_jump(self) -> bool:
        host = self._node().host
        jump_ms = self._chance.randint(-CLOCK_JUMP_MS_MAX, CLOCK_JUMP_MS_MAX)
        host.wall_offset_ms += jump_ms
        self._wall_offset_max_ms = max(self._wall_offset_max_ms, host.wall_offset_ms)
        self._tell(f"the clock of {host.name} jumps by {jump_ms} ms")
        return True


FAULTS: Final = (
    "kill",
    "power_loss",
    "power_loss_in_a_write",
    "power_loss_everywhere",
    "lose_directory",
    "flip_bits",
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
    "isolate",
    "clock_jump",
)
