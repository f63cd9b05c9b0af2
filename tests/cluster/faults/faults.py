"""Faults of a cluster, one at a time: each starts, lasts a while, and ends.

A fault leaves the cluster as it found it: all nodes run, all links are open. Nothing is done that
acknowledged records may not survive: a disk is lost only while two others have everything on it.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from tests.cluster.faults.disks import Disk
from tests.cluster.processes import ClusterProcesses

SHORT_S: Final = (0.2, 1.2)  # Shorter than a broker's session.
LONG_S: Final = (2.5, 5.0)  # Longer.
DISK_IS_SPARE_BYTES: Final = 256 << 10


class Faults:
    """`in_sync` waits until every replica of every partition is in sync."""

    def __init__(
        self,
        cluster: ClusterProcesses,
        chance: random.Random,
        in_sync: Callable[[], None],
        disks: dict[int, Disk] | None = None,
        *,
        loses_power: bool = False,
        renew: Callable[[int], None] | None = None,
    ) -> None:
        """`renew` gives a node a new key and certificate."""
        self._cluster = cluster
        self._chance = chance
        self._in_sync = in_sync
        self._disks = disks or {}
        self.kinds: dict[str, Callable[[], None]] = {
            "kill -9": self.kill,
            "kill -9 of the controller": self.kill_controller,
            "kill -9 of all nodes": self.kill_all,
            "orderly restart": self.restart,
            "short pause": self.pause_short,
            "long pause": self.pause_long,
            "lost directory": self.lose_directory,
        }
        if cluster.links is not None:
            self.kinds["cut one way"] = self.cut_one_way
            self.kinds["cut both ways"] = self.cut_both_ways
            self.kinds["node cut off"] = self.cut_off
            self.kinds["kill -9 while another is cut off"] = self.kill_beside_cut_off
        if self._disks:
            self.kinds["full disk"] = self.fill_disk
        if loses_power:
            self.kinds["loss of power"] = self.lose_power
        if renew is not None:
            self.kinds["renewed certificate"] = partial(self.renew_certificate, renew)

    def bring_back(self) -> list[int]:
        """Restarts nodes that exited although no fault stopped them; returns their ids."""
        ended = [
            other_id for other_id in self._cluster.ids if other_id not in self._cluster.running
        ]
        for node_id in ended:
            self._cluster.kill(node_id)
            self._cluster.restart(node_id)
        return ended

    def kill(self) -> None:
        self._kill(self._any())

    def kill_controller(self) -> None:
        self._kill(self._cluster.leader())

    def kill_all(self) -> None:
        for node_id in self._cluster.ids:
            self._cluster.kill(node_id)
        self._start_all()

    def restart(self) -> None:
        node_id = self._any()
        self._cluster.terminate(node_id)
        self._cluster.restart(node_id)

    def pause_short(self) -> None:
        self._pause(SHORT_S)

    def pause_long(self) -> None:
        self._pause(LONG_S)

    def cut_one_way(self) -> None:
        source, target = self._chance.sample(self._cluster.ids, 2)
        self._cut((source, target))

    def cut_both_ways(self) -> None:
        node_id, other = self._chance.sample(self._cluster.ids, 2)
        self._cut((node_id, other), (other, node_id))

    def cut_off(self) -> None:
        """Cuts a node off from all others; clients still reach it."""
        self._cut(*self._all_of(self._any()))

    def kill_beside_cut_off(self) -> None:
        """Nothing can be acknowledged until one of the two returns."""
        assert self._cluster.links is not None
        away, killed = self._chance.sample(self._cluster.ids, 2)
        with self._cluster.links.without(*self._all_of(away)):
            self._last(SHORT_S)
            self._cluster.kill(killed)
            self._last(LONG_S)
        self._last(SHORT_S)
        self._cluster.restart(killed)

    def lose_directory(self) -> None:
        self._in_sync()
        node_id = self._any()
        self._cluster.kill(node_id)
        self._cluster.lose_directory(node_id)
        self._cluster.restart(node_id)
        self._in_sync()

    def fill_disk(self) -> None:
        """The disk is full, then has room again. A node that gave up is restarted."""
        node_id = self._chance.choice(list(self._disks))
        with self._disks[node_id].full():
            self._last(LONG_S)
        if node_id not in self._cluster.running:
            self._cluster.kill(node_id)
            self._cluster.restart(node_id)

    def lose_power(self) -> None:
        self._in_sync()
        self._cluster.lose_power()
        self._start_all()

    def renew_certificate(self, renew: Callable[[int], None]) -> None:
        """Usually it is in use by the time that the next fault causes new connections."""
        renew(self._any())
        self._last(LONG_S)

    def _all_of(self, node_id: int) -> list[tuple[int, int]]:
        """The links of one node to and from the others."""
        others = [other for other in self._cluster.ids if other != node_id]
        return [(node_id, other) for other in others] + [(other, node_id) for other in others]

    def _any(self) -> int:
        return self._chance.choice(self._cluster.ids)

    def _kill(self, node_id: int) -> None:
        self._cluster.kill(node_id)
        self._last(SHORT_S if self._chance.random() < 0.5 else LONG_S)
        self._cluster.restart(node_id)

    def _start_all(self) -> None:
        for node_id in self._cluster.ids:
            self._cluster.restart(node_id, wait=False)
        for node_id in self._cluster.ids:
            self._cluster.node(node_id).wait_until_ready()

    def _pause(self, span_s: tuple[float, float]) -> None:
        with self._cluster.paused(self._any()):
            self._last(span_s)

    def _cut(self, *directions: tuple[int, int]) -> None:
        assert self._cluster.links is not None
        with self._cluster.links.without(*directions):
            self._last(SHORT_S if self._chance.random() < 0.3 else LONG_S)

    def _last(self, span_s: tuple[float, float]) -> None:
        time.sleep(self._chance.uniform(*span_s))
