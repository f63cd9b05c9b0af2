"""`ottla topics verify`: whether the replicas of partitions have the same records."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any, NamedTuple

from kio.schema.metadata.v13.response import MetadataResponsePartition

from ottla.cli.broker_call import BrokerCall, bootstrap_broker
from ottla.cli.broker_configs import topic_configs
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError, ExitCode
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson
from ottla.cli.replica_reader import Bounds, ReplicaReader
from ottla.protocol.topics import TopicPartition
from ottla.records.comparison import (
    Difference,
    batches_of,
    first_different_batch,
    first_different_record,
    records_of,
)

COLUMNS = ("topic", "partition", "node", "offset", "problem")


class Found(NamedTuple):
    """A replica that is not like the others, or could not be compared with them."""

    topic_partition: TopicPartition
    node_id: int
    offset: int | None
    problem: str
    replicas: Sequence[int]
    is_different: bool = True

    def document(self) -> dict[str, Any]:
        return {
            **self.topic_partition._asdict(),
            "node": self.node_id,
            "offset": self.offset,
            "problem": self.problem,
            "repair": self.repair(),
        }

    def repair(self) -> list[str]:
        """Commands that take the replica away and copy it again from the others."""
        if not self.is_different:
            return []
        others = [node_id for node_id in self.replicas if node_id != self.node_id]
        words = "ottla topics reassign {} --partition {} --replicas {}"
        return [
            words.format(*self.topic_partition, ",".join(map(str, node_ids)))
            for node_ids in (others, [*others, self.node_id])
        ]


def verify(
    topic: str | None = None,
    /,
    *,
    partition: list[int] | None = None,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> int:
    """Compare the replicas of partitions batch by batch, up to the high watermark.

    All records are read from every replica. Each replica of a compacted topic is compacted at
    its own time, so only the records that replicas have in common are compared.

    Args:
        topic: Name of the topic; all topics by default.
        partition: Only this partition; may be repeated.
    """
    found: list[Found] = []
    with bootstrap_broker(connection) as broker, ExitStack() as stack:
        partitions = _chosen(broker.partitions(), topic, partition)
        topics = {topic_partition.topic for topic_partition in partitions}
        policies = topic_configs(broker, "cleanup.policy", topics)
        nodes = {node.node_id: node for node in broker.nodes() if not node.fenced}
        brokers: dict[int, BrokerCall] = {}
        in_sync = {node_id for state in partitions.values() for node_id in state.isr_nodes}
        for node_id in sorted(in_sync & nodes.keys()):
            brokers[node_id] = stack.enter_context(broker.beside(nodes[node_id]))
        for topic_partition, state in sorted(partitions.items()):
            is_compacted = "compact" in (policies.get(topic_partition.topic) or "")
            found += _verify(brokers, topic_partition, state, is_compacted=is_compacted)
    _show(found, len(partitions), as_json)
    return ExitCode.FAILED if any(replica.is_different for replica in found) else ExitCode.OK


def _chosen(
    partitions: Mapping[TopicPartition, MetadataResponsePartition],
    topic: str | None,
    indexes: list[int] | None,
) -> dict[TopicPartition, MetadataResponsePartition]:
    chosen = {
        topic_partition: state
        for topic_partition, state in partitions.items()
        if topic in (None, topic_partition.topic)
        and (not indexes or topic_partition.partition in indexes)
    }
    if topic is not None and not chosen:
        raise CommandError(f"there is no such partition of topic {topic!r}")
    return chosen


def _verify(
    brokers: Mapping[int, BrokerCall],
    topic_partition: TopicPartition,
    state: MetadataResponsePartition,
    *,
    is_compacted: bool,
) -> list[Found]:
    def found(node_id: int, problem: str, offset: int | None = None) -> Found:
        replicas = tuple(map(int, state.replica_nodes))
        is_different = offset is not None
        return Found(topic_partition, node_id, offset, problem, replicas, is_different)

    left_out = [
        found(node_id, "is not in sync, and was not compared")
        for node_id in state.replica_nodes
        if node_id not in state.isr_nodes or node_id not in brokers
    ]
    in_sync = [node_id for node_id in state.isr_nodes if node_id in brokers]
    if state.leader_id not in in_sync or len(in_sync) < 2:
        return left_out
    in_sync.sort(key=lambda node_id: node_id != state.leader_id)
    readers = [ReplicaReader(brokers[node_id], topic_partition) for node_id in in_sync]
    try:
        end_offset = readers[0].end_offset()
        differences = _compare(
            readers, [reader.bounds(end_offset) for reader in readers], is_compacted
        )
    except CommandError as error:
        return [*left_out, found(state.leader_id, f"could not be compared: {error}")]
    return left_out + [
        found(node_id, difference.problem, difference.offset)
        for node_id, difference in differences.items()
    ]


def _compare(
    readers: list[ReplicaReader], bounds: list[Bounds], is_compacted: bool
) -> dict[int, Difference]:
    """The first difference of each replica that is unlike most."""
    start_offset = max(bound.log_start_offset for bound in bounds)
    end_offset = min(bound.high_watermark for bound in bounds)

    def differences(reference: ReplicaReader) -> dict[int, Difference]:
        compared = (
            (
                reader.node_id,
                _first_difference(reference, reader, start_offset, end_offset, is_compacted),
            )
            for reader in readers
            if reader is not reference
        )
        return {node_id: difference for node_id, difference in compared if difference is not None}

    found = differences(readers[0])
    if 1 < len(found) == len(readers) - 1:  # The leader may be the one that is wrong.
        return min(found, differences(readers[1]), key=len)
    return found


def _first_difference(
    reference: ReplicaReader,
    other: ReplicaReader,
    start_offset: int,
    end_offset: int,
    is_compacted: bool,
) -> Difference | None:
    contents = [reader.content(start_offset, end_offset) for reader in (reference, other)]
    if is_compacted:
        return first_different_record(*(chain.from_iterable(map(records_of, c)) for c in contents))
    return first_different_batch(*(chain.from_iterable(map(batches_of, c)) for c in contents))


def _show(found: list[Found], count: int, as_json: bool) -> None:
    if as_json:
        print_json([replica.document() for replica in found])
        return
    if found:
        print_rows(COLUMNS, [replica.document() for replica in found])
    if not any(replica.is_different for replica in found):
        print_line(f"the replicas of {count} partitions have the same records")
    for replica in found:
        if replica.is_different:
            take_away, copy_again = replica.repair()
            print_line(
                f"copy {replica.topic_partition} on node {replica.node_id} again from the others:"
            )
            print_line(f"  {take_away}\n  {copy_again}")
