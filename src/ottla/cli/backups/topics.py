"""The topics that a command is about, and those that it makes."""

import fnmatch
from collections.abc import Iterable, Sequence

from ottla.cli.backups.cluster_state import set_configs
from ottla.cli.backups.manifest import TopicBackup
from ottla.cli.errors import CommandError, ManyErrors, UsageError
from ottla.client.wire.cluster import Cluster, Topic, TopicPartition
from ottla.client.wire.configs import TOPIC
from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation, list_offsets
from ottla.client.wire.topics import create_request, partitions_request
from ottla.controller.config import RECORD_IMPORT
from ottla.protocol.errors import ErrorCode
from ottla.storage.config import SEGMENT_BYTES, SEGMENT_BYTES_MIN, TOPIC_KEYS

_KNOWN_KEYS = frozenset(key.name for key in TOPIC_KEYS)


def chosen(names: Iterable[str], patterns: Sequence[str], excluded: Sequence[str]) -> list[str]:
    """Names that match one of the patterns, or all, and none of the excluded."""
    available = sorted(names)
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in available):
            raise UsageError(f"--topic {pattern}: there is no such topic")
    return [
        name
        for name in available
        if (not patterns or any(fnmatch.fnmatchcase(name, each) for each in patterns))
        and not any(fnmatch.fnmatchcase(name, each) for each in excluded)
    ]


def read_topics(
    cluster: Cluster, patterns: Sequence[str], excluded: Sequence[str]
) -> list[TopicBackup]:
    """Not those that brokers write for themselves: what is in them is asked for by other ways."""
    found = {
        name: each
        for name, each in cluster.topics().items()
        if not each.is_internal and not name.startswith("__")
    }
    names = chosen(found, patterns, excluded)
    configs = cluster.retry(lambda: set_configs(cluster, TOPIC, names))
    return [_topic(name, found[name], configs.get(name, {})) for name in names]


def _topic(name: str, topic: Topic, configs: dict[str, str]) -> TopicBackup:
    factor = max((len(replicas) for replicas in topic.replicas.values()), default=1)
    kept = {key: value for key, value in configs.items() if key != RECORD_IMPORT.name}
    ends = dict.fromkeys(topic.leaders, 0)
    return TopicBackup(name, str(topic.id or "none"), factor, kept, ends)


def topic_partitions_of(topics: Iterable[TopicBackup]) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition)
        for topic in topics
        for partition in sorted(topic.end_offsets)
    ]


def ranges_of(
    cluster: Cluster, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """Where each log starts, and up to where every transaction is decided."""
    wanted = list(topic_partitions)
    ends = list_offsets(cluster, dict.fromkeys(wanted, LATEST), Isolation.READ_COMMITTED)
    starts = list_offsets(cluster, dict.fromkeys(wanted, EARLIEST))
    return {
        topic_partition: (
            min(starts[topic_partition] or 0, ends[topic_partition] or 0),
            ends[topic_partition] or 0,
        )
        for topic_partition in wanted
    }


def import_states(cluster: Cluster, names: Iterable[str]) -> dict[str, str]:
    """Of those topics that exist: open, closed or none."""
    existing = list(cluster.topics(list(names)))
    configs = cluster.retry(lambda: set_configs(cluster, TOPIC, existing))
    return {
        name: configs.get(name, {}).get(RECORD_IMPORT.name, RECORD_IMPORT.default)
        for name in existing
    }


def create_missing(
    cluster: Cluster,
    topics: Sequence[TopicBackup],
    replication_factor: int | None,
    extra: dict[str, str],
    *,
    refusal: str,
) -> tuple[set[str], list[str]]:
    """Returns those that are complete, and notes. What others may have written is refused."""
    states = import_states(cluster, [each.name for each in topics])
    strange = [name for name, state in states.items() if state == "none"]
    if strange:
        raise ManyErrors([f"topic {name} {refusal}" for name in strange])
    notes = []
    for topic in topics:
        if topic.name not in states:
            notes += create_open(cluster, topic, replication_factor, extra)
    return {name for name, state in states.items() if state == "closed"}, notes


def create_open(
    cluster: Cluster, topic: TopicBackup, replication_factor: int | None, extra: dict[str, str]
) -> list[str]:
    """Make a topic that takes imports; returns notes of what it cannot have as it was."""
    own = {key: value for key, value in topic.configs.items() if key not in extra}
    notes = _enlarge_segments(topic.name, own)
    configs = own | extra
    unknown = sorted(configs.keys() - _KNOWN_KEYS)
    wanted = {key: value for key, value in configs.items() if key in _KNOWN_KEYS}
    brokers = cluster.retry(lambda: len(cluster.every_broker()))
    factor = replication_factor or min(topic.replication_factor, brokers)
    request = create_request(
        topic.name,
        partitions=len(topic.end_offsets),
        config={**wanted, RECORD_IMPORT.name: "open"},
        replication_factor=factor,
    )

    def create() -> None:
        for created in cluster.controller().call(request).topics:
            if created.error_code is not ErrorCode.none:
                raise CommandError(f"topic {topic.name}: {created.error_message}")

    cluster.retry(create)
    cluster.forget_metadata()
    notes += [
        f"topic {topic.name}: Ottla has no config {key}, which was {configs[key]}"
        for key in unknown
    ]
    if factor != topic.replication_factor:
        notes.append(
            f"topic {topic.name}: replication factor {factor}, not {topic.replication_factor}"
        )
    return notes


def _enlarge_segments(topic: str, configs: dict[str, str]) -> list[str]:
    """To what Ottla, and Kafka from 4.0 on, accept; earlier versions took any size."""
    size = configs.get(SEGMENT_BYTES.name)
    if size is None or int(size) >= SEGMENT_BYTES_MIN:
        return []
    configs[SEGMENT_BYTES.name] = str(SEGMENT_BYTES_MIN)
    return [f"topic {topic}: {SEGMENT_BYTES.name} {SEGMENT_BYTES_MIN}, not {size}"]


def add_partitions(cluster: Cluster, topic: str, count: int) -> None:
    request = partitions_request(topic, count)

    def add() -> None:
        for result in cluster.controller().call(request).results:
            if result.error_code not in (ErrorCode.none, ErrorCode.invalid_partitions):
                raise CommandError(f"topic {topic}: {result.error_message}")

    cluster.retry(add)
    cluster.forget_metadata()
