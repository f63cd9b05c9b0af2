"""Which nodes partitions should be on: plans for draining, rebalancing and more or fewer replicas.

A plan moves as few replicas as it can. It never puts two replicas of a partition into one rack
where that can be avoided, and it never gives a partition a replica on a node that is not active;
what such a node has stays, for it may come back.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import groupby
from typing import NamedTuple


class Node(NamedTuple):
    node_id: int
    rack: str | None = None
    active: bool = True
    down: bool = False  # What it has cannot be moved: a reassignment waits for all its replicas.


class Place(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Assignments = dict[Place, tuple[int, ...]]  # The replicas; the first is to lead.


class Move(NamedTuple):
    place: Place
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def added(self) -> set[int]:
        """The nodes that the partition is copied to."""
        return set(self.after) - set(self.before)

    @property
    def copies(self) -> int:
        return len(self.added)


class NoRoom(Exception):
    """There are fewer active nodes than replicas; the message says which and what to do."""


def plan_drain(assignments: Assignments, nodes: Sequence[Node], leaving: int) -> list[Move]:
    """Other nodes take over what one has."""
    plan = _Plan(assignments, [node for node in nodes if node.node_id != leaving])
    drained = [place for place, replicas in assignments.items() if leaving in replicas]
    for place in drained:
        plan.replace(place, leaving)
    plan.spread_leaders(drained)
    return plan.moves()


def plan_rebalance(assignments: Assignments, nodes: Sequence[Node]) -> list[Move]:
    """Every node has about as many replicas, and leads about as many partitions.

    Partitions that have a replica on a node that is down stay as they are.
    """
    waiting = waiting_for_nodes(assignments, nodes)
    plan = _Plan(assignments, nodes, fixed=waiting.keys())
    plan.spread_racks()
    plan.spread_replicas()
    plan.spread_leaders(assignments.keys() - waiting)
    return plan.moves()


def waiting_for_nodes(assignments: Assignments, nodes: Sequence[Node]) -> dict[Place, set[int]]:
    """The partitions that have replicas on nodes that are down, and these nodes."""
    down = {node.node_id for node in nodes if node.down}
    return {place: down & set(on) for place, on in assignments.items() if down & set(on)}


def plan_replication_factor(
    assignments: Assignments, nodes: Sequence[Node], topic: str, factor: int
) -> list[Move]:
    plan = _Plan(assignments, nodes)
    places = [place for place in assignments if place.topic == topic]
    for place in places:
        plan.resize(place, factor)
    return plan.moves()


class _Plan:
    def __init__(
        self, assignments: Assignments, nodes: Sequence[Node], fixed: Set[Place] = frozenset()
    ) -> None:
        self._before = assignments
        self._fixed = fixed  # They count, and stay as they are.
        self._replicas = {place: list(replicas) for place, replicas in assignments.items()}
        self._nodes = {node.node_id: node for node in nodes if node.active}
        # The partitions of each topic that a node has; nodes that get nothing are not in it.
        self._on: dict[int, dict[str, set[int]]] = {
            node_id: defaultdict(set) for node_id in self._nodes
        }
        self._load: Counter[int] = Counter(dict.fromkeys(self._nodes, 0))
        self._racks = {node.node_id: node.rack for node in nodes}
        for place, replicas in assignments.items():
            for replica in replicas:
                self._count(place, replica, 1)

    def moves(self) -> list[Move]:
        return [
            Move(place, self._before[place], tuple(replicas))
            for place, replicas in sorted(self._replicas.items())
            if tuple(replicas) != self._before[place]
        ]

    def replace(self, place: Place, leaving: int) -> None:
        self._set(place, leaving, self._best(place, without=leaving))

    def resize(self, place: Place, factor: int) -> None:
        replicas = self._replicas[place]
        while len(replicas) < factor:
            added = self._best(place, without=None)
            replicas.append(added)
            self._count(place, added, 1)
        while len(replicas) > factor:
            # The leader stays; the fullest of the others goes, and of a rack that has two first.
            removed = max(
                replicas[1:],
                key=lambda one: (
                    one not in self._nodes,
                    self._conflicts(place, one, without=one),
                    self._load[one],
                ),
            )
            replicas.remove(removed)
            self._count(place, removed, -1)

    def spread_racks(self) -> None:
        for place, replicas in self._replicas.items():
            for replica in () if place in self._fixed else tuple(replicas):
                conflicts = self._conflicts(place, replica, without=replica)
                if not conflicts or replica not in self._nodes:
                    continue
                best = min(
                    self._free(place),
                    key=lambda one: (self._conflicts(place, one, without=replica), self._load[one]),
                    default=None,
                )
                if best is not None and self._conflicts(place, best, replica) < conflicts:
                    self._set(place, replica, best)

    def spread_replicas(self) -> None:
        while self._move_one():
            pass

    def _move_one(self) -> bool:
        """From a full node to an empty one, the most distant pair first."""
        by_load = sorted(self._nodes, key=lambda node: (self._load[node], node))
        pairs = sorted(
            ((full, empty) for full in by_load for empty in by_load),
            key=lambda pair: self._load[pair[1]] - self._load[pair[0]],
        )
        for full, empty in pairs:
            if self._load[full] - self._load[empty] < 2:
                return False
            for place in self._movable(full, empty):
                self._set(place, full, empty)
                return True
        return False

    def _movable(self, full: int, empty: int) -> Iterator[Place]:
        """Of the topics that are spread least evenly over the two first."""
        there = self._on[empty]
        topics = sorted(
            self._on[full].items(),
            key=lambda item: (len(there.get(item[0], ())) - len(item[1]), item[0]),
        )
        for topic, partitions in topics:
            for partition in sorted(partitions - there.get(topic, set())):
                place = Place(topic, partition)
                if place in self._fixed:
                    continue
                now = self._conflicts(place, full, without=full)
                if self._conflicts(place, empty, without=full) <= now:
                    yield place

    def spread_leaders(self, places: Iterable[Place]) -> None:
        """Along chains: what one node gives to the next, that one gives on."""
        movable = set(places)
        led: dict[int, set[Place]] = {node: set() for node in self._nodes}
        counts: Counter[int] = Counter(dict.fromkeys(self._nodes, 0))
        for place, replicas in self._replicas.items():
            if replicas[0] in self._nodes:
                counts[replicas[0]] += 1
                if place in movable:
                    led[replicas[0]].add(place)
        while (chain := self._chain(counts, led)) is not None:
            for giver, taker, place in chain:
                led[giver].remove(place)
                led[taker].add(place)
                replicas = self._replicas[place]
                other = replicas.index(taker)
                replicas[0], replicas[other] = replicas[other], replicas[0]
            counts[chain[0][0]] -= 1
            counts[chain[-1][1]] += 1

    def _chain(
        self, counts: Counter[int], led: dict[int, set[Place]]
    ) -> list[tuple[int, int, Place]] | None:
        """From a node that leads many to the nearest that leads at least two fewer."""
        for start in sorted(counts, key=lambda node: (-counts[node], node)):
            came: dict[int, tuple[int, Place]] = {}
            queue = deque([start])
            while queue:
                giver = queue.popleft()
                if counts[start] - counts[giver] >= 2:
                    return _path(start, giver, came)
                for place in sorted(led[giver]):
                    for taker in self._replicas[place][1:]:
                        if taker in self._nodes and taker != start and taker not in came:
                            came[taker] = (giver, place)
                            queue.append(taker)
        return None

    def _best(self, place: Place, without: int | None) -> int:
        free = self._free(place)
        if not free:
            count = len(self._before[place])
            fewer = f", or give {place.topic} fewer replicas" if count > 1 else " first"
            raise NoRoom(f"there is no other active node to take {place}; add a node{fewer}")
        return min(
            free,
            key=lambda one: (
                self._conflicts(place, one, without),
                self._load[one],
                len(self._on[one].get(place.topic, ())),
                one,
            ),
        )

    def _free(self, place: Place) -> list[int]:
        return [node for node in self._nodes if node not in self._replicas[place]]

    def _conflicts(self, place: Place, node: int, without: int | None) -> int:
        """How many other replicas are in the node's rack; without a rack it is one of its own."""
        rack = self._racks.get(node)
        if rack is None:
            return 0
        return sum(
            self._racks.get(replica) == rack
            for replica in self._replicas[place]
            if replica not in (node, without)
        )

    def _set(self, place: Place, old: int, new: int) -> None:
        replicas = self._replicas[place]
        replicas[replicas.index(old)] = new
        self._count(place, old, -1)
        self._count(place, new, 1)

    def _count(self, place: Place, node: int, change: int) -> None:
        if node not in self._nodes:
            return
        self._load[node] += change
        if change > 0:
            self._on[node][place.topic].add(place.partition)
        else:
            self._on[node][place.topic].discard(place.partition)


def _path(start: int, end: int, came: dict[int, tuple[int, Place]]) -> list[tuple[int, int, Place]]:
    steps: list[tuple[int, int, Place]] = []
    while end != start:
        giver, place = came[end]
        steps.append((giver, end, place))
        end = giver
    return steps[::-1]


def by_topic(places: Iterable[Place]) -> list[tuple[str, list[Place]]]:
    ordered = sorted(places)
    return [(topic, list(found)) for topic, found in groupby(ordered, key=lambda one: one.topic)]


def in_steps(moves: Sequence[Move], size: int) -> Iterator[Sequence[Move]]:
    for start in range(0, len(moves), size):
        yield moves[start : start + size]
