"""The faults: what goes wrong, when, and how it is repaired.

Each kind of fault is a generator: it begins the fault, yields for how long that may last, and mends
it. One that yields nothing could not begin. `stop` mends all of them at once, and everything is
well again.
"""

import math
from collections.abc import Iterator, Sequence
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

_AT_ONCE: Final = 0.0  # There is nothing to mend, or it is mended by itself.
_TO_THE_END: Final = math.inf

Fault = Iterator[float]  # Its longest duration, in seconds.
Ways = Sequence[tuple[Host, Host]]  # From one machine to another.


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
        self._lasting: dict[Fault, None] = {}  # In the order in which they began.
        self._stopped = False
        self._wall_offset_max_ms = 0.0  # Of any clock, ever.

    def start(self) -> None:
        for node in self._chance.sample(self._nodes, self._absent_count):
            self._begin(self._take_away(node))
        self._watch()
        if self._kinds:
            self._schedule()

    def stop(self) -> None:
        """End all faults, for good."""
        self._stopped = True
        for fault in list(self._lasting):
            self._mend(fault)
        self._set_clocks()
        self._scheduler.tell("faults", "end")

    def _set_clocks(self) -> None:
        """Set all clocks to the latest time that any has shown.

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
            if self._begin(getattr(self, f"_{kind}")()):
                self._scheduler.count(f"fault: {kind}")
            self._schedule()

    def _begin(self, fault: Fault) -> bool:
        """Whether it could."""
        seconds_max = next(fault, None)
        if seconds_max is None:
            return False
        if seconds_max != _AT_ONCE:
            self._lasting[fault] = None
            if seconds_max != _TO_THE_END:
                seconds = self._chance.uniform(0.05, seconds_max)
                self._scheduler.call_later(seconds, lambda: self._mend(fault))
        return True

    def _mend(self, fault: Fault) -> None:
        if fault in self._lasting:
            del self._lasting[fault]
            next(fault, None)

    def _watch(self) -> None:
        """Restart what has ended, unless it is down on purpose."""
        for node in self._nodes:
            if node.host.process is None and not node.held_down:
                node.start()
        self._scheduler.call_later(RESTART_AFTER_S, self._watch)

    def _node(self) -> SimulatedNode:
        return self._chance.choice(self._nodes)

    def _running_node(self) -> SimulatedNode | None:
        node = self._node()
        return None if node.host.process is None else node

    def _dispensable_node(self) -> SimulatedNode | None:
        """One that runs, while the others have all that it has."""
        node = self._running_node()
        membership = self._membership
        if len(self._nodes) >= NODES_MIN and membership.is_whole and membership.has_copies:
            return node
        return None

    def _tell(self, what: str) -> None:
        self._scheduler.tell("faults", what)

    # Processes and machines.

    def _down(self, node: SimulatedNode, seconds_max: float = DOWN_S_MAX) -> Fault:
        node.held_down += 1
        yield seconds_max
        node.held_down -= 1

    def _kill(self) -> Fault:
        if node := self._running_node():
            node.kill()
            yield from self._down(node)

    def _take_away(self, node: SimulatedNode) -> Fault:
        node.kill()
        self._scheduler.count("fault: absence")
        yield from self._down(node, _TO_THE_END)

    def _power_loss(self) -> Fault:
        if node := self._running_node():
            node.power_off()
            yield from self._down(node)

    def _power_loss_in_a_write(self) -> Fault:
        if node := self._running_node():
            node.host.disk.power_loss_after(self._chance.randrange(12))
            yield _AT_ONCE

    def _power_loss_everywhere(self) -> Fault:
        for node in self._nodes:
            if node.host.process is not None:
                node.power_off()
                self._begin(self._down(node))
        yield _AT_ONCE

    def _lose_directory(self) -> Fault:
        """Of one node at a time."""
        if node := self._dispensable_node():
            node.lose_directory()
            yield from self._down(node)

    def _flip_bits(self) -> Fault:
        """On the disk of one node at a time, while it is down."""
        node = self._dispensable_node()
        if node is not None and node.serving:
            count = self._chance.randint(1, 3)
            node.held_down += 1
            self._chance.choice((node.kill, node.power_off, node.stop))()
            self._flip_when_down(node, count)
            yield _AT_ONCE

    def _flip_when_down(self, node: SimulatedNode, count: int) -> None:
        if node.host.process is not None:
            self._scheduler.call_later(0.1, lambda: self._flip_when_down(node, count))
            return
        for _ in range(count):
            node.flip_bit(self._chance)
        self._begin(self._down(node))
        node.held_down -= 1

    def _restart(self) -> Fault:
        node = self._running_node()
        if node is not None and node.serving:
            node.stop()
            yield _AT_ONCE

    def _pause(self) -> Fault:
        if node := self._running_node():
            node.pause()
            yield PAUSE_S_MAX
            node.resume()

    def _kill_client(self) -> Fault:
        if mortals := self._mortals():
            self._chance.choice(mortals).kill()
            yield _AT_ONCE

    def _supersede_client(self) -> Fault:
        if mortals := self._mortals():
            earlier = self._chance.choice(mortals).supersede()
            yield PAUSE_S_MAX
            earlier.process.resume()

    def _mortals(self) -> list[SimulatedClient]:
        return [client for client in self._clients if client.mortal]

    # The network.

    def _two_hosts(self) -> tuple[Host, Host]:
        """A node, and another one or a client."""
        host = self._node().host
        others = self._others(host)
        if not others or self._chance.random() < CLIENT_CHANCE:
            others = [client.host for client in self._clients]
        return host, self._chance.choice(others)

    def _others(self, host: Host) -> list[Host]:
        """Of the other nodes."""
        return [node.host for node in self._nodes if node.host is not host]

    def _cut(self) -> Fault:
        host, other = self._two_hosts()
        ways = self._chance.choice(
            ([(host, other)], [(other, host)], [(host, other), (other, host)])
        )
        names = ", ".join(f"{source.name}->{target.name}" for source, target in ways)
        self._tell(f"cut {names}")
        yield from self._closed(ways)
        self._tell(f"mend {names}")

    def _isolate(self) -> Fault:
        """A node from all the others; clients may still reach it."""
        host = self._node().host
        self._tell(f"isolate {host.name}")
        yield from self._closed(
            [way for other in self._others(host) for way in ((host, other), (other, host))]
        )
        self._tell(f"{host.name} is isolated no more")

    def _closed(self, ways: Ways) -> Fault:
        for source, target in ways:
            self._network.cut(source, target)
        yield NETWORK_FAULT_S_MAX
        for source, target in ways:
            self._network.mend(source, target)

    def _reset(self) -> Fault:
        host, other = self._two_hosts()
        self._tell(f"reset the connections of {host.name} and {other.name}")
        self._network.reset_connections(host, other)
        yield _AT_ONCE

    def _slow_network(self) -> Fault:
        """One way, or all ways between nodes."""
        everywhere = self._chance.random() < EVERYWHERE_CHANCE
        between_nodes = permutations([node.host for node in self._nodes], 2)
        ways = list(between_nodes) if everywhere else [self._two_hosts()]
        delay_s = self._chance.choice((0.01, 0.04, 0.1, 0.5))
        loss = self._chance.choice((0.0, 0.1, 0.3))
        for source, target in ways:
            way = self._network.way(source, target)
            way.delay_s, way.loss = delay_s, loss
            self._tell(f"{source.name}->{target.name} takes {delay_s} s and loses {loss}")
        yield NETWORK_FAULT_S_MAX
        for source, target in ways:
            way = self._network.way(source, target)
            way.delay_s, way.loss = Way().delay_s, Way().loss

    # Disks.

    def _slow_disk(self) -> Fault:
        host = self._node().host
        host.disk_slowness = self._chance.choice((10.0, 200.0, 1_000.0))
        self._tell(f"the disk of {host.name} is {host.disk_slowness} times slower")
        yield DISK_FAULT_S_MAX
        host.disk_slowness = 1.0

    def _disk_full(self) -> Fault:
        node = self._node()
        disk = node.host.disk
        disk.disk_full(self._chance.randrange(20_000))
        self._tell(f"the disk of {node} is full")
        yield DISK_FAULT_S_MAX
        disk.disk_full(None)

    def _failing_sync(self) -> Fault:
        """A process that goes on without its disk is ended after a while, or the machine is."""
        node = self._node()
        node.host.disk.fail_next_sync()
        life = node.life
        self._tell(f"the next sync of {node} fails")
        yield DISK_FAULT_S_MAX
        if node.life == life and node.host.process is not None:
            self._chance.choice((node.kill, node.power_off))()

    # Clocks.

    def _clock_jump(self) -> Fault:
        host = self._node().host
        jump_ms = self._chance.randint(-CLOCK_JUMP_MS_MAX, CLOCK_JUMP_MS_MAX)
        host.wall_offset_ms += jump_ms
        self._wall_offset_max_ms = max(self._wall_offset_max_ms, host.wall_offset_ms)
        self._tell(f"the clock of {host.name} jumps by {jump_ms} ms")
        yield _AT_ONCE


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
