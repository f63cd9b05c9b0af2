"""Topics and partitions: traffic, offsets, sizes, replicas."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ottla.node.config import METRICS_PARTITIONS, METRICS_TOPICS
from ottla.node.metrics.family import Family, Number, Section, copied, labelled
from ottla.replication.counters import TopicTraffic
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import Partition
from ottla.replication.partition_leader import PartitionLeader

SECTION = Section("Topics and partitions")

_REPLICAS = SECTION.gauge("ottla_partitions", "Replicas on this node.")
_LED = SECTION.gauge("ottla_leader_partitions", "Partitions that this node leads.")
_UNDER_REPLICATED = SECTION.gauge(
    "ottla_under_replicated_partitions", "Partitions led here with replicas that are not in sync."
)
_UNDER_MIN_ISR = SECTION.gauge(
    "ottla_under_min_isr_partitions",
    "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
)
_NOT_PREFERRED = SECTION.gauge(
    "ottla_not_preferred_leader_partitions",
    "Partitions led here whose preferred leader is another node.",
)
_ELECTIONS = SECTION.counter(
    "ottla_leader_elections_total",
    "New leaders of partitions that have a replica here, this node among them or not.",
)
_ISR_CHANGES = SECTION.counter(
    "ottla_isr_changes_total",
    "Changes of the in-sync sets of partitions led here: shrink or expand.",
    ("change",),
)


class _Topic(NamedTuple):
    family: Family
    attribute: str  # An attribute of TopicTraffic.


def _topic(attribute: str, name: str, text: str) -> _Topic:
    labels, setting = ("topic",), METRICS_TOPICS.name
    return _Topic(SECTION.counter(f"ottla_topic_{name}", text, labels, setting), attribute)


_BYTES_IN = SECTION.counter(
    "ottla_topic_bytes_in_total",
    "Bytes of batches written to partitions led here, by producers or the broker.",
    ("topic",),
    METRICS_TOPICS.name,
)
_RECORDS_IN = SECTION.counter(
    "ottla_topic_records_in_total",
    "Records written to partitions led here, transaction markers included.",
    ("topic",),
    METRICS_TOPICS.name,
)
_TOPIC_FAMILIES: Final = (
    _topic(
        "batches_in",
        "produce_requests_total",
        "Produce requests that wrote here, counted once per partition.",
    ),
    _topic("bytes_out", "bytes_out_total", "Bytes of batches sent to consumers."),
    _topic(
        "records_out",
        "records_out_total",
        "Offsets in the batches sent to consumers; compacted batches have fewer records.",
    ),
    _topic(
        "fetches_out",
        "fetch_requests_total",
        "Consumer fetches that returned records, counted once per partition.",
    ),
    _topic("replication_bytes_in", "replication_bytes_in_total", "Bytes fetched from leaders."),
)


def _partition(name: str, text: str) -> Family:
    return SECTION.gauge(name, text, ("topic", "partition"), METRICS_PARTITIONS.name)


_PARTITION_FAMILIES: Final = (
    _partition("ottla_partition_start_offset", "The first offset that can be read."),
    _partition(
        "ottla_partition_end_offset",
        "The offset of the next record; on the leader, its rate is records per second.",
    ),
    _partition("ottla_partition_high_watermark", "Consumers see the records before this offset."),
    _partition("ottla_partition_size_bytes", "The size of the log."),
    _partition("ottla_partition_segments", "The segments of the log."),
    _partition("ottla_partition_is_leader", "1 on the leader."),
    _partition(
        "ottla_partition_in_sync_replicas",
        "On the leader, the number of in-sync replicas; 0 on followers.",
    ),
)
_LEADER_FAMILIES: Final = (
    _partition("kafka_topic_partition_current_offset", "The high watermark. From the leader."),
    _partition("kafka_topic_partition_oldest_offset", "The first offset. From the leader."),
    _partition("kafka_topic_partition_in_sync_replica", "In-sync replicas. From the leader."),
    _partition("kafka_topic_partition_replicas", "Replicas. From the leader."),
    _partition(
        "kafka_topic_partition_under_replicated_partition",
        "1 if a replica is not in sync. From the leader.",
    ),
    _partition("kafka_topic_partition_leader", "The leader's node id. From the leader."),
    _partition(
        "kafka_topic_partition_leader_is_preferred",
        "1 if the leader is the preferred one. From the leader.",
    ),
)
_KAFKA_PARTITIONS = SECTION.gauge(
    "kafka_topic_partitions",
    "Partitions of the topic. From the leader of partition 0.",
    ("topic",),
    METRICS_TOPICS.name,
)


def collect(
    node_id: int, replicas: ReplicaManager, *, by_topic: bool, by_partition: bool
) -> Iterator[str]:
    partitions = copied(replicas.partitions)
    led = [leader for partition in partitions if (leader := partition.leader) is not None]
    yield from _REPLICAS.line(len(partitions))
    yield from _LED.line(len(led))
    yield from _UNDER_REPLICATED.line(sum(map(_is_under_replicated, led)))
    yield from _UNDER_MIN_ISR.line(sum(map(_is_under_minimum, led)))
    elsewhere = sum(preferred_leader(replicas, leader.partition) != node_id for leader in led)
    yield from _NOT_PREFERRED.line(elsewhere)
    counters = replicas.counters
    yield from _ELECTIONS.line(counters.leader_elections)
    yield from _ISR_CHANGES.by((("shrink", counters.isr_shrinks), ("expand", counters.isr_expands)))
    if by_topic:
        yield from _by_topic(replicas, partitions)
    if by_partition:
        yield from _table(_PARTITION_FAMILIES, map(_partition_values, partitions))
        of_leader = (_leader_values(node_id, replicas, leader) for leader in led)
        yield from _table(_LEADER_FAMILIES, of_leader)


def _by_topic(replicas: ReplicaManager, partitions: Iterable[Partition]) -> Iterator[str]:
    traffic: dict[str, TopicTraffic] = {}
    grown: Counter[str] = Counter()
    grown_bytes: Counter[str] = Counter()
    first_led: list[str] = []
    for partition in partitions:
        topic, index = partition.log.topic_partition
        traffic.setdefault(topic, partition.traffic)
        records, size = partition.led_growth()
        grown[topic] += records
        grown_bytes[topic] += size
        if index == 0 and partition.is_leader:
            first_led.append(topic)
    rows = [(labelled(("topic",), (topic,)), each) for topic, each in traffic.items()]
    for topic, each in traffic.items():
        # A partition that is changing its leader may be missed; a counter must not decrease.
        each.reported_records = max(each.reported_records, each.led_records + grown[topic])
        each.reported_bytes = max(each.reported_bytes, each.led_bytes + grown_bytes[topic])
    yield from _BYTES_IN.lines((labels, each.reported_bytes) for labels, each in rows)
    yield from _RECORDS_IN.lines((labels, each.reported_records) for labels, each in rows)
    for family, attribute in _TOPIC_FAMILIES:
        yield from family.lines((labels, getattr(each, attribute)) for labels, each in rows)
    counts = ((topic, replicas.partition_count(topic)) for topic in first_led)
    yield from _KAFKA_PARTITIONS.by(counts)


_Row = tuple[str, tuple[Number, ...]]


def _table(families: tuple[Family, ...], rows: Iterable[_Row]) -> Iterator[str]:
    table: list[_Row] = []
    for row in rows:
        table.append(row)
        yield ""  # It takes a while, and the reader lets others proceed here.
    for index, family in enumerate(families):
        yield from family.lines((labels, values[index]) for labels, values in table)


def _labels(partition: Partition) -> str:
    topic, index = partition.log.topic_partition
    return f'{{topic="{topic}",partition="{index}"}}'


def _partition_values(partition: Partition) -> _Row:
    log, leader = partition.log, partition.leader
    values = (
        log.log_start_offset,
        log.log_end_offset,
        log.high_watermark,
        log.size,
        len(log.segments),
        int(leader is not None),
        0 if leader is None else len(leader.in_sync_replicas),
    )
    return _labels(partition), values


def _leader_values(node_id: int, replicas: ReplicaManager, leader: PartitionLeader) -> _Row:
    partition, log = leader.partition, leader.partition.log
    values = (
        log.high_watermark,
        log.log_start_offset,
        len(leader.in_sync_replicas),
        _replicas_count(leader),
        int(_is_under_replicated(leader)),
        node_id,
        int(preferred_leader(replicas, partition) == node_id),
    )
    return _labels(partition), values


def preferred_leader(replicas: ReplicaManager, partition: Partition) -> int:
    state = replicas.state_of(partition)
    return -1 if state is None else state.replicas[0]


def _is_under_replicated(leader: PartitionLeader) -> bool:
    return _replicas_count(leader) > len(leader.in_sync_replicas)


def _replicas_count(leader: PartitionLeader) -> int:
    followers = leader.followers
    return 1 if followers is None else followers.established_count


def _is_under_minimum(leader: PartitionLeader) -> bool:
    minimum = leader.partition.log.config.min_insync_replicas
    return len(leader.in_sync_replicas) < min(minimum, _replicas_count(leader))
