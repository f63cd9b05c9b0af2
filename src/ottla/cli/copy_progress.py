"""How far a reassignment is: partitions and bytes, as a bar for a person and as lines elsewhere.

What is left to copy is what the new replicas have less on their disks than the old ones.
"""

import sys
from collections.abc import Collection, Sequence
from typing import Self

from kio.schema.describe_log_dirs.v5.request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ottla.cli.broker_call import BrokerCall
from ottla.cli.output import format_size, print_line
from ottla.cli.replica_plan import Move
from ottla.client.wire.cluster import by_topic
from ottla.protocol.topics import TopicPartition

Sizes = dict[tuple[int, TopicPartition], int]  # By node.


def bytes_left(sizes: Sizes, move: Move) -> int:
    """Until the new replicas of a partition have what the fullest of the old ones has."""
    whole = max((sizes.get((node, move.topic_partition), 0) for node in move.before), default=0)
    return sum(max(whole - sizes.get((node, move.topic_partition), 0), 0) for node in move.added)


def read_sizes(broker: BrokerCall, moves: Sequence[Move]) -> Sizes:
    """What the nodes have of these partitions; nothing is known of nodes that do not answer."""
    wanted = {node for move in moves for node in (*move.before, *move.after)}
    request = DescribeLogDirsRequest(
        topics=tuple(
            DescribableLogDirTopic(topic=TopicName(topic), partitions=tuple(map(i32, partitions)))
            for topic, partitions in by_topic([move.topic_partition for move in moves]).items()
        )
    )
    sizes: Sizes = {}
    for node in broker.nodes():
        if node.node_id not in wanted:
            continue
        response = broker.ask(node, request)
        for directory in response.results if response else ():
            for topic in directory.topics:
                for partition in topic.partitions:
                    topic_partition = TopicPartition(topic.name, partition.partition_index)
                    sizes[node.node_id, topic_partition] = partition.partition_size
    return sizes


class CopyProgress:
    """Shown from `with` on; `update` is told which partitions are not done."""

    def __init__(self, broker: BrokerCall, moves: Sequence[Move]) -> None:
        self._broker = broker
        self._moves = moves
        self._done = 0
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _Bar(len(self._moves))
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, pending: Collection[TopicPartition]) -> None:
        done = len(self._moves) - len(pending)
        if self._bar is not None:
            self._bar.show(done, self._left(pending))
        elif done > self._done:
            left = f", {format_size(self._left(pending))} left" if pending else ""
            print_line(f"{done} of {len(self._moves)} partitions done{left}", sys.stderr)
        self._done = done

    def _left(self, pending: Collection[TopicPartition]) -> int:
        moves = [move for move in self._moves if move.topic_partition in pending]
        sizes = read_sizes(self._broker, moves) if moves else {}
        return sum(bytes_left(sizes, move) for move in moves)


class _Bar:
    """By bytes; by partitions where there is nothing to copy."""

    def __init__(self, count: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.fields[done]} of {task.fields[count]} partitions"),
            BarColumn(),
            TextColumn("{task.fields[left]} left"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("", total=None, done=0, count=count, left="?")
        self._count = count
        self._size = 0
        self._progress.start()

    def show(self, done: int, left: int) -> None:
        self._size = max(self._size, left)
        self._progress.update(
            self._task,
            total=self._size or self._count,
            completed=self._size - left if self._size else done,
            done=done,
            left=format_size(left),
        )

    def close(self) -> None:
        self._progress.stop()
