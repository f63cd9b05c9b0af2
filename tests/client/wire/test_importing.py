"""Batches that keep their offsets, on brokers in this process."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8
from tests.client.topics import create_topic
from tests.client.wire.batches import batch
from tests.client.wire.raw_logs import read_raw, without_epochs

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.importing import Importer
from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation, list_offsets
from ottla.client.wire.producing import Producer, init_producer, produce
from ottla.client.wire.topics import ensure_topic
from ottla.protocol.errors import ErrorCode
from ottla.records.batch import iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import ControlType, Marker, build_marker
from ottla.testing import EmbeddedBroker, EmbeddedCluster

OPEN: dict[str, Any] = {"record.import": "open"}
OLD_MS = 1_000_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def cluster(broker: EmbeddedBroker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap_servers, retry_timeout_ms=120_000) as cluster:
        yield cluster


def imported(offset: int, count: int = 1, **options: object) -> bytes:
    """A batch from leader epoch 8 of another cluster."""
    records = [Record(timestamp=OLD_MS, value=b"v%d" % (offset + index)) for index in range(count)]
    options = {"leader_epoch": 7, "last_offset_delta": count - 1, **options}
    return bytes(build_batch(records, base_offset=offset, **options))  # type: ignore[arg-type]


def marker(offset: int, producer_id: int, kind: ControlType) -> bytes:
    built = build_marker(
        Marker(kind, 0), timestamp_ms=OLD_MS, producer_id=producer_id, producer_epoch=0
    )
    built[:8] = offset.to_bytes(8, "big")
    return bytes(built)


def import_all(
    cluster: Cluster, topic_partition: TopicPartition, batches: list[bytes], start: int
) -> None:
    with Importer(cluster, topic_partition) as importer:
        next_offset = importer.begin(start)
        for each in batches:
            ((_, header),) = iterate_headers(each)
            importer.write(each, next_offset)
            next_offset = header.next_offset
        importer.finish()
    assert list_offsets(cluster, {topic_partition: LATEST})[topic_partition] == next_offset


def close_import(cluster: Cluster, topic: str, value: str = "closed") -> ErrorCode:
    change = AlterableConfig(name="record.import", config_operation=i8(0), value=value)
    resource = AlterConfigsResource(resource_type=i8(2), resource_name=topic, configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (result,) = cluster.controller().call(request).responses
    code: ErrorCode = result.error_code
    return code


def test_batches_keep_their_offsets_and_bytes_but_for_the_leader_epoch(cluster: Cluster) -> None:
    topic_partition = TopicPartition(create_topic(cluster, **OPEN), 0)
    batches = [imported(5_000_000_000, 3), imported(5_000_000_010, 2), imported(5_000_000_012)]
    import_all(cluster, topic_partition, batches, 5_000_000_000)
    data = read_raw(cluster, topic_partition)
    assert without_epochs(data) == without_epochs(b"".join(batches))
    assert {header.partition_leader_epoch for _, header in iterate_headers(data)} == {0}
    assert list_offsets(cluster, {topic_partition: EARLIEST})[topic_partition] == 5_000_000_000
    assert list_offsets(cluster, {topic_partition: LATEST})[topic_partition] == 5_000_000_013


def test_an_empty_log_begins_where_it_is_told(cluster: Cluster) -> None:
    topic = create_topic(cluster, **OPEN)
    topic_partition = TopicPartition(topic, 0)
    import_all(cluster, topic_partition, [], 40)
    assert close_import(cluster, topic) is ErrorCode.none
    assert produce(cluster, {topic_partition: batch(b"first")})[topic_partition] == 40


def test_only_one_kind_of_writer_has_the_topic_at_a_time(cluster: Cluster) -> None:
    topic = create_topic(cluster, **OPEN)
    topic_partition = TopicPartition(topic, 0)
    with pytest.raises(BrokerError, match="policy violation"):
        produce(cluster, {topic_partition: batch(b"mine")})
    import_all(cluster, topic_partition, [imported(0)], 0)
    assert close_import(cluster, topic) is ErrorCode.none
    assert produce(cluster, {topic_partition: batch(b"mine")})[topic_partition] == 1
    with pytest.raises(BrokerError, match=r"record\.import of its topic is closed"):
        import_all(cluster, topic_partition, [imported(2)], 0)
    assert close_import(cluster, topic, "open") is ErrorCode.invalid_config


def test_a_topic_that_others_write_takes_no_imports(cluster: Cluster) -> None:
    topic = create_topic(cluster)
    with pytest.raises(BrokerError, match=r"record\.import of its topic is none"):
        import_all(cluster, TopicPartition(topic, 0), [imported(0)], 0)
    assert close_import(cluster, topic, "open") is ErrorCode.invalid_config


def test_what_does_not_follow_or_is_damaged_is_refused(cluster: Cluster) -> None:
    topic_partition = TopicPartition(create_topic(cluster, **OPEN), 0)
    import_all(cluster, topic_partition, [imported(0, 3)], 0)
    damaged = bytearray(imported(3))
    damaged[-1] ^= 1
    refusals = {
        ErrorCode.offset_out_of_range: (imported(4), 4),
        ErrorCode.corrupt_message: (bytes(damaged), 3),
    }
    for code, (records, next_offset) in refusals.items():
        with Importer(cluster, topic_partition) as importer:
            importer.write(records, next_offset)
            with pytest.raises(BrokerError) as caught:
                importer.finish()
            assert caught.value.code is code
    with Importer(cluster, topic_partition) as importer:
        importer.write(imported(3) + imported(4)[:-1], 3)
        with pytest.raises(BrokerError, match="bytes after the last whole batch"):
            importer.finish()
    with Importer(cluster, topic_partition) as importer:
        importer.write(imported(2), 3)
        with pytest.raises(BrokerError, match="cannot be appended after 3"):
            importer.finish()
    assert list_offsets(cluster, {topic_partition: LATEST})[topic_partition] == 3


def test_transactions_are_known_as_they_ended(cluster: Cluster) -> None:
    topic_partition = TopicPartition(create_topic(cluster, **OPEN), 0)
    options = {"producer_id": 77, "producer_epoch": 0, "transactional": True}
    batches = [
        imported(0, 2, base_sequence=0, **options),
        marker(2, 77, ControlType.ABORT),
        imported(3, 1, base_sequence=2, **options),
        marker(4, 77, ControlType.COMMIT),
    ]
    import_all(cluster, topic_partition, batches, 0)
    with Fetcher(cluster, topic_partition, Isolation.READ_COMMITTED) as fetcher:
        fetched = fetcher.fetch(0)
        assert [(each.producer_id, each.first_offset) for each in fetched.aborted] == [(77, 0)]
        assert fetched.last_stable_offset == 5


def test_a_new_producer_is_not_taken_for_one_of_the_imported(cluster: Cluster) -> None:
    """Other clusters count producer ids from 0 or from any other number."""
    topic = create_topic(cluster, **OPEN)
    topic_partition = TopicPartition(topic, 0)
    first = init_producer(cluster)
    ids = range(3)
    batches = [
        imported(index, producer_id=each, producer_epoch=0, base_sequence=0)
        for index, each in enumerate(ids)
    ]
    import_all(cluster, topic_partition, batches, 0)
    close_import(cluster, topic)
    assert first.id >= 2**32
    for index, producer in enumerate((first, init_producer(cluster))):
        assert isinstance(producer, Producer)
        records = batch(b"new", producer=producer)
        assert produce(cluster, {topic_partition: records})[topic_partition] == 3 + index


def test_replicas_have_the_same_log_through_a_change_of_leaders() -> None:
    with (
        EmbeddedCluster(3, config={"default.replication.factor": 3}) as brokers,
        Cluster(brokers.bootstrap_servers, retry_timeout_ms=120_000) as cluster,
    ):
        ensure_topic(cluster, "orders", partitions=1, config=OPEN, replication_factor=3)
        topic_partition = TopicPartition("orders", 0)
        batches = [imported(1000 + 3 * index, 2) for index in range(30)]
        # The leader may hear of the topic after the controller has answered.
        cluster.retry(partial(import_missing, cluster, topic_partition, batches[:10], start=1000))
        for done, killed in ((10, True), (20, False)):
            leader = brokers.leader("orders")
            if killed:
                brokers.kill_node(leader)
            else:
                other = next(each for each in brokers.node_ids if each != leader)
                brokers.move_leader("orders", to=other)
            cluster.forget()
            cluster.retry(
                partial(import_missing, cluster, topic_partition, batches[done : done + 10])
            )
            brokers.heal()
        data = read_raw(cluster, topic_partition)
        assert without_epochs(data) == without_epochs(b"".join(batches))
        epochs = [header.partition_leader_epoch for _, header in iterate_headers(data)]
        assert epochs == sorted(epochs)
        assert epochs[0] < epochs[-1]
        for node_id in brokers.node_ids:
            brokers.move_leader("orders", to=node_id)
            cluster.forget()
            assert read_raw(cluster, topic_partition) == data


def import_missing(
    cluster: Cluster, topic_partition: TopicPartition, batches: list[bytes], start: int = 0
) -> None:
    """The missing batches, however the last attempt ended; its requests may arrive late."""
    while True:
        try:
            with Importer(cluster, topic_partition) as importer:
                end = importer.begin(start)
                for each in batches:
                    ((_, header),) = iterate_headers(each)
                    if header.base_offset >= end:
                        importer.write(each, end)
                        end = header.next_offset
                importer.finish()
                return
        except BrokerError as error:
            if error.code is not ErrorCode.offset_out_of_range:
                raise
