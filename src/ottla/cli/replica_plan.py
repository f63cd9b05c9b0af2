"""Which nodes partitions should be on: plans for draining, rebalancing and more or fewer replicas.

A plan moves as few replicas as it can. It never puts two replicas of a partition into one rack
where that can be avoided, and it never gives a partition a replica on a node that is not active;
what such a node has stays, for it may come back.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from ottla.cli.errors import CommandError
from ottla.protocol.topics import TopicPartition


class Node(NamedTuple):
    node_id: int
    rack: str | None = None
    active: bool = True
    down: bool = False  # What it has cannot be moved: a reassignment waits for all its replicas.


Assignments = dict[TopicPartition, tuple[int, ...]]  # The replicas; the first is to lead.


class Move(NamedTuple):
    topic_partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def added(self) -> set[int]:
        """The nodes that the partition is copied to."""
        return set(self.after) - set(self.before)

    @property
    def copies(self) -> int:
        return len(self.added)


class NoRoom(CommandError):
    """There are fewer active nodes than replicas; the message says which and what to do."""


def plan_drain(assignments: Assignments, nodes: Sequence[Node], leaving: int) -> list[Move]:
    """Other nodes take over what one has."""
    plan = _Plan(assignments, [node for node in nodes if node.node_id != leaving])
    drained = [
        topic_partition for topic_partition, replicas in assignments.items() if leaving in replicas
    ]
    for topic_partition in drained:
        plan.replace(topic_partition, leaving)
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


def waiting_for_nodes(
    assignments: Assignments, nodes: Sequence[Node]
) -> dict[TopicPartition, set[int]]:
    """The partitions that have replicas on nodes that are down, and these nodes."""
    down = {node.node_id for node in nodes if node.down}
    return {
        topic_partition: down & set(on)
        for topic_partition, on in assignments.items()
        if down & set(on)
    }


def plan_replication_factor(
    assignments: Assignments, nodes: Sequence[Node], topic: str, factor: int
) -> list[Move]:
    plan = _Plan(assignments, nodes)
    topic_partitions = [
        topic_partition for topic_partition in assignments if topic_partition.topic == topic
    ]
    for topic_partition in topic_partitions:
        plan.resize(topic_partition, factor)
    return plan.moves()


class _Plan:
    def __init__(
        self,
        assignments: Assignments,
        nodes: Sequence[Node],
        fixed: Set[TopicPartition] = frozenset(),
    ) -> None:
        self._before = assignments
        self._fixed = fixed  # They count, and stay as they are.
        self._replicas = {
            topic_partition: list(replicas) for topic_partition, replicas in assignments.items()
        }
        self._nodes = {node.node_id: node for node in nodes if node.active}
        # The partitions of each topic that a node has; nodes that get nothing are not in it.
        self._on: dict[int, dict[str, set[int]]] = {
            node_id: defaultdict(set) for node_id in self._nodes
        }
        self._load: Counter[int] = Counter(dict.fromkeys(self._nodes, 0))
        self._racks = {node.node_id: node.rack for node in nodes}
        for topic_partition, replicas in assignments.items():
            for replica in replicas:
                self._count(topic_partition, replica, 1)

    def moves(self) -> list[Move]:
        return [
            Move(topic_partition, self._before[topic_partition], tuple(replicas))
            for topic_partition, replicas in sorted(self._replicas.items())
            if tuple(replicas) != self._before[topic_partition]
        ]

    def replace(self, topic_partition: TopicPartition, leaving: int) -> None:
        self._set(topic_partition, leaving, self._best(topic_partition, without=leaving))

    def resize(self, topic_partition: TopicPartition, factor: int) -> None:
        replicas = self._replicas[topic_partition]
        while len(replicas) < factor:
            added = self._best(topic_partition, without=None)
            replicas.append(added)
            self._count(topic_partition, added, 1)
        while len(replicas) > factor:
            # The leader stays; the fullest of the others goes, and of a rack that has two first.
            removed = max(
                replicas[1:],
                key=lambda node: (
                    node not in self._nodes,
                    self._conflicts(topic_partition, node, without=node),
                    self._load[node],
                ),
            )
            replicas.remove(removed)
            self._count(topic_partition, removed, -1)

    def spread_racks(self) -> None:
        for topic_partition, replicas in self._replicas.items():
            for replica in () if topic_partition in self._fixed else tuple(replicas):
                conflicts = self._conflicts(topic_partition, replica, without=replica)
                if not conflicts or replica not in self._nodes:
                    continue
                best = min(
                    self._free(topic_partition),
                    key=lambda node: (
                        self._conflicts(topic_partition, node, without=replica),
                        self._load[node],
                    ),
                    default=None,
                )
                if best is not None and self._conflicts(topic_partition, best, replica) < conflicts:
                    self._set(topic_partition, replica, best)

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
            for topic_partition in self._movable(full, empty):
                self._set(topic_partition, full, empty)
                return True
        return False

    def _movable(self, full: int, empty: int) -> Iterator[TopicPartition]:
        """Of the topics that are spread least evenly over the two first."""
        there = self._on[empty]
        topics = sorted(
            self._on[full].items(),
            key=lambda item: (len(there.get(item[0], ())) - len(item[1]), item[0]),
        )
        for topic, partitions in topics:
            for partition in sorted(partitions - there.get(topic, set())):
                topic_partition = TopicPartition(topic, partition)
                if topic_partition in self._fixed:
                    continue
                now = self._conflicts(topic_partition, full, without=full)
                if self._conflicts(topic_partition, empty, without=full) <= now:
                    yield topic_partition

    def spread_leaders(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Along chains: what one node gives to the next, that one gives on."""
        movable = set(topic_partitions)
        led: dict[int, set[TopicPartition]] = {node: set() for node in self._nodes}
        counts: Counter[int] = Counter(dict.fromkeys(self._nodes, 0))
        for topic_partition, replicas in self._replicas.items():
            if replicas[0] in self._nodes:
                counts[replicas[0]] += 1
                if topic_partition in movable:
                    led[replicas[0]].add(topic_partition)
        while (chain := self._chain(counts, led)) is not None:
            for giver, taker, topic_partition in chain:
                led[giver].remove(topic_partition)
                led[taker].add(topic_partition)
                replicas = self._replicas[topic_partition]
                other = replicas.index(taker)
                replicas[0], replicas[other] = replicas[other], replicas[0]
            counts[chain[0][0]] -= 1
            counts[chain[-1][1]] += 1

    def _chain(
        self, counts: Counter[int], led: dict[int, set[TopicPartition]]
    ) -> list[tuple[int, int, TopicPartition]] | None:
        """From a node that leads many to the nearest that leads at least two fewer."""
        for start in sorted(counts, key=lambda node: (-counts[node], node)):
            came: dict[int, tuple[int, TopicPartition]] = {}
            queue = deque([start])
            while queue:
                giver = queue.popleft()
                if counts[start] - counts[giver] >= 2:
                    return _path(start, giver, came)
                for topic_partition in sorted(led[giver]):
                    for taker in self._replicas[topic_partition][1:]:
                        if taker in self._nodes and taker != start and taker not in came:
                            came[taker] = (giver, topic_partition)
                            queue.append(taker)
        return None

    def _best(self, topic_partition: TopicPartition, without: int | None) -> int:
        free = self._free(topic_partition)
        if not free:
            count = len(self._before[topic_partition])
            fewer = f", or give {topic_partition.topic} fewer replicas" if count > 1 else " first"
            raise NoRoom(
                f"there is no other active node to take {topic_partition}; add a node{fewer}"
            )
        return min(
            free,
            key=lambda node: (
                self._conflicts(topic_partition, node, without),
                self._load[node],
                len(self._on[node].get(topic_partition.topic, ())),
                node,
            ),
        )

    def _free(self, topic_partition: TopicPartition) -> list[int]:
        return [node for node in self._nodes if node not in self._replicas[topic_partition]]

    def _conflicts(self, topic_partition: TopicPartition, node: int, without: int | None) -> int:
        """How many other replicas are in the node's rack; without a rack it is one of its own."""
        rack = self._racks.get(node)
        if rack is None:
            return 0
        return sum(
            self._racks.get(replica) == rack
            for replica in self._replicas[topic_partition]
            if replica not in (node, without)
        )

    def _set(self, topic_partition: TopicPartition, old: int, new: int) -> None:
        replicas = self._replicas[topic_partition]
        replicas[replicas.index(old)] = new
        self._count(topic_partition, old, -1)
        self._count(topic_partition, new, 1)

    def _count(self, topic_partition: TopicPartition, node: int, change: int) -> None:
        if node not in self._nodes:
            return
        self._load[node] += change
        if change > 0:
            self._on[node][topic_partition.topic].add(topic_partition.partition)
        else:
            self._on[node][topic_partition.topic].discard(topic_partition.partition)


def _path(
    start: int, end: int, came: dict[int, tuple[int, TopicPartition]]
) -> list[tuple[int, int, TopicPartition]]:
    steps: list[tuple[int, int, TopicPartition]] = []
    while end != start:
        giver, topic_partition = came[end]
        steps.append((giver, end, topic_partition))
        end = giver
    return steps[::-1]


def in_steps(moves: Sequence[Move], size: int) -> Iterator[Sequence[Move]]:
    for start in range(0, len(moves), size):
        yield moves[start : start + size]
