"""SIGKILL at random moments under load: no acknowledged record is lost, moved or duplicated.

One broker is killed repeatedly while producers write to topics with different settings; afterwards
each test checks one promise.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.command import start_ottla
from tests.clients.confluent_client import ConfluentClient
from tests.clients.wire import Wire
from tests.process.producers import (
    IdempotentWriter,
    NumberWriter,
    PlainWriter,
    TopicPartition,
    key_of,
    producer_of,
)
from tests.process.stored import StoredPartition, read_partition
from tests.process.topic_churn import TopicChurn

# One worker: the kills take longer than all of the checks.
pytestmark = pytest.mark.xdist_group("kills")

KILLS = 6
ACKS_BETWEEN_KILLS_MAX = 1000
PARTITIONS = 2
TINY_SEGMENTS = {"internal.segment.bytes": "4000", "index.interval.bytes": "200"}
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "rolling": TINY_SEGMENTS,
    "compacted": TINY_SEGMENTS | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "retained": TINY_SEGMENTS | {"retention.bytes": "20000", "file.delete.delay.ms": "0"},
}
SETTINGS = (
    ("log.cleaner.backoff.ms", "20"),
    ("log.retention.check.interval.ms", "50"),
    ("log.flush.offset.checkpoint.interval.ms", "100"),
)


class Aftermath(NamedTuple):
    broker: BrokerProcess
    writers: list[NumberWriter]
    churn: TopicChurn
    partitions: dict[TopicPartition, StoredPartition]


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    settings = [item for key, value in SETTINGS for item in ("--set", f"{key}={value}")]
    broker = BrokerProcess(tmp_path_factory.mktemp("kill"), *settings)
    broker.start()
    try:
        client = ConfluentClient(broker.bootstrap)
        for topic, config in TOPICS.items():
            client.create_topic(topic, PARTITIONS, config)
        topic_partitions = [
            (topic, partition) for topic in TOPICS for partition in range(PARTITIONS)
        ]
        writers: list[NumberWriter] = [
            IdempotentWriter("idempotent-a", broker.bootstrap, topic_partitions),
            IdempotentWriter("idempotent-b", broker.bootstrap, topic_partitions),
            PlainWriter("plain-a", broker.bootstrap, topic_partitions),
        ]
        churn = TopicChurn(broker.bootstrap)
        _kill_under_load(broker, writers, churn)
        with Wire(broker.bootstrap) as wire:
            partitions = {
                topic_partition: read_partition(wire, *topic_partition)
                for topic_partition in topic_partitions
            }
        yield Aftermath(broker, writers, churn, partitions)
    finally:
        broker.kill()


def _kill_under_load(broker: BrokerProcess, writers: list[NumberWriter], churn: TopicChurn) -> None:
    for thread in (*writers, churn):
        thread.start()
    for _ in range(KILLS):
        target = sum(writer.count for writer in writers)
        target += random.randrange(1, ACKS_BETWEEN_KILLS_MAX)
        while sum(writer.count for writer in writers) < target:
            churn.join(0.005)
            assert all(thread.is_alive() for thread in (*writers, churn)), broker.log_text()
        broker.kill()
        broker.start()
    while not (churn.created and churn.deleted):  # It may have made little progress.
        churn.join(0.005)
        assert churn.is_alive(), broker.log_text()
    for writer in writers:
        writer.end()
    churn.end()


def _acknowledged(
    aftermath: Aftermath, topic_partition: TopicPartition
) -> dict[int, tuple[str, int]]:
    """Producer and number by offset."""
    return {
        offset: (writer.name, number)
        for writer in aftermath.writers
        for number, offset in writer.acknowledged[topic_partition].items()
    }


def _written(partition: StoredPartition) -> dict[int, tuple[str, int]]:
    return {
        record.offset: (producer_of(record.key or b""), int(record.value or b""))
        for record in partition.records
    }


ALL = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
KEEPING = [topic_partition for topic_partition in ALL if topic_partition[0] in ("plain", "rolling")]
DENSE = [topic_partition for topic_partition in ALL if topic_partition[0] != "compacted"]


@pytest.mark.parametrize("topic_partition", DENSE, ids=str)
def test_every_acknowledged_record_is_at_its_offset(
    aftermath: Aftermath, topic_partition: TopicPartition
) -> None:
    partition = aftermath.partitions[topic_partition]
    written = _written(partition)
    acknowledged = _acknowledged(aftermath, topic_partition)
    assert acknowledged
    kept = {o: record for o, record in acknowledged.items() if o >= partition.start_offset}
    assert {offset: written.get(offset) for offset in kept} == kept
    if topic_partition in KEEPING:
        assert kept == acknowledged


@pytest.mark.parametrize("topic_partition", DENSE, ids=str)
def test_offsets_have_no_holes(aftermath: Aftermath, topic_partition: TopicPartition) -> None:
    partition = aftermath.partitions[topic_partition]
    assert partition.offsets == list(range(partition.start_offset, partition.end_offset))


@pytest.mark.parametrize("topic_partition", ALL, ids=str)
def test_each_producer_is_in_order_and_nothing_is_there_twice(
    aftermath: Aftermath, topic_partition: TopicPartition
) -> None:
    numbers = defaultdict(list)
    for producer, number in _written(aftermath.partitions[topic_partition]).values():
        numbers[producer].append(number)
    for found in numbers.values():
        assert found == sorted(set(found))


@pytest.mark.parametrize("topic_partition", KEEPING, ids=str)
def test_an_idempotent_producer_has_no_gaps(
    aftermath: Aftermath, topic_partition: TopicPartition
) -> None:
    for writer in aftermath.writers:
        if isinstance(writer, IdempotentWriter):
            written = _written(aftermath.partitions[topic_partition]).values()
            found = [number for producer, number in written if producer == writer.name]
            assert found == list(range(len(writer.acknowledged[topic_partition])))


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_compaction_keeps_the_last_record_of_each_key(aftermath: Aftermath, partition: int) -> None:
    topic_partition = ("compacted", partition)
    last: dict[bytes, int] = {}
    for record in aftermath.partitions[topic_partition].records:
        last[record.key or b""] = int(record.value or b"")
    for writer in aftermath.writers:
        for number in writer.acknowledged[topic_partition]:
            assert last[key_of(writer.name, number)] >= number


def test_topics_are_there_when_created_and_gone_when_deleted(aftermath: Aftermath) -> None:
    client = ConfluentClient(aftermath.broker.bootstrap)
    there = client.topics()
    churn = aftermath.churn
    assert churn.created
    assert churn.deleted
    assert there >= churn.created
    assert not there & churn.deleted
    directories = {path.name.rpartition("-")[0] for path in aftermath.broker.data.iterdir()}
    assert not directories & churn.deleted
    for topic in churn.created:
        assert client.offsets(topic, 0)[1] >= 1
        client.delete_topic(topic)


def test_the_consumer_and_the_files_agree(aftermath: Aftermath) -> None:
    broker = aftermath.broker
    client = ConfluentClient(broker.bootstrap)
    stored = aftermath.partitions["rolling", 0]
    received = client.consume("rolling", 0, 0, len(stored.records))
    assert [(record.offset, record.value) for record in received] == [
        (record.offset, record.value) for record in stored.records
    ]
    assert broker.stop() == 0
    assert "Traceback" not in broker.log_text()
    directories = [broker.data / f"{topic}-{partition}" for topic, partition in ALL]
    for command in (_segments_of, _indexes_of):
        with start_ottla("dump", *command(directories)) as dump:
            _, problems = dump.communicate()
        assert (dump.returncode, problems) == (0, b"")
    broker.start()  # For the other tests.


def _segments_of(directories: list[Path]) -> list[Path]:
    return directories


def _indexes_of(directories: list[Path]) -> list[Path]:
    suffixes = {".index", ".timeindex"}
    return [f for d in directories for f in d.iterdir() if f.suffix in suffixes]
