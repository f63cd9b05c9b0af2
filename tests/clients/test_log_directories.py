"""AlterReplicaLogDirs and DescribeLogDirs on a broker with two log directories.

With Apache Kafka, it needs a broker that has two as well.
"""

from collections.abc import Callable, Iterator

import pytest
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.describe_log_dirs.v4.request import DescribableLogDirTopic, DescribeLogDirsRequest
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32
from tests.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentClient
from tests.clients.requests import batch, fetch, produce
from tests.clients.wire import Wire
from tests.conftest import EXTERNAL_BOOTSTRAP

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.groups import commit_offsets, committed_offsets

pytestmark = pytest.mark.process

OFFSETS = "__consumer_offsets"
RECORDS = 200
SET, BROKER = i8(0), i8(4)


@pytest.fixture(scope="module")
def two_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if EXTERNAL_BOOTSTRAP:
        yield EXTERNAL_BOOTSTRAP
        return
    directory = tmp_path_factory.mktemp("directories")
    with BrokerProcess(directory, "--data", str(directory / "second")) as broker:
        yield broker.bootstrap


@pytest.fixture
def wire(two_directories: str) -> Iterator[Wire]:
    with Wire(two_directories) as wire:
        yield wire


@pytest.fixture
def topic(two_directories: str, new_name: Callable[[], str], wire: Wire) -> str:
    """With records."""
    name = new_name()
    ConfluentClient(two_directories).create_topic(name, 1, {"segment.bytes": "1048576"})
    records = batch(*(b"%d" % number * 5_000 for number in range(10)))
    for _ in range(RECORDS // 10):
        while produced(wire, name, records) is not ErrorCode.none:
            pass
    return name


def produced(wire: Wire, topic: str, records: bytes) -> ErrorCode:
    response = wire.call(produce(topic, records)).responses[0].partition_responses[0]
    assert isinstance(response.error_code, ErrorCode)
    return response.error_code


def alter(wire: Wire, path: str, topic: str, *partitions: int) -> list[ErrorCode]:
    wanted = AlterReplicaLogDirTopic(name=TopicName(topic), partitions=tuple(map(i32, partitions)))
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=path, topics=(wanted,)),))
    (result,) = wire.call(request).results
    assert result.topic_name == topic
    by_index = {partition.partition_index: partition.error_code for partition in result.partitions}
    return [by_index[i32(index)] for index in partitions]


def directories(wire: Wire, topic: str, *partitions: int) -> dict[str, list[tuple[int, bool]]]:
    """By path: the lag of the replicas there, and whether they are future replicas."""
    wanted = DescribableLogDirTopic(
        topic=TopicName(topic), partitions=tuple(map(i32, partitions or (0,)))
    )
    response = wire.call(DescribeLogDirsRequest(topics=(wanted,)))
    return {
        result.log_dir: [
            (int(partition.offset_lag), partition.is_future_key)
            for found in result.topics
            for partition in found.partitions
        ]
        for result in response.results
    }


def where(wire: Wire, topic: str) -> tuple[str, str]:
    """The directory of the replica, and the other one."""
    paths: list[str] = []
    while len(paths) != 1:  # Kafka has two for a moment when a replica moves, and none before.
        found = directories(wire, topic)
        paths = [path for path, replicas in found.items() if (0, False) in replicas]
    (path,) = paths
    (other,) = [each for each in found if each != path]
    return path, other


def test_a_replica_moves_and_keeps_its_records(wire: Wire, topic: str) -> None:
    path, other = where(wire, topic)
    before = wire.call(fetch(topic, 0, max_bytes=1 << 26)).responses[0].partitions[0].records
    assert alter(wire, other, topic, 0) == [ErrorCode.none]
    while directories(wire, topic) != {path: [], other: [(0, False)]}:
        for replicas in directories(wire, topic).values():
            assert all(0 <= lag <= RECORDS for lag, _ in replicas)
    after = wire.call(fetch(topic, 0, max_bytes=1 << 26)).responses[0].partitions[0]
    assert after.records == before
    assert after.high_watermark == RECORDS
    while produced(wire, topic, batch(b"behind the move")) is not ErrorCode.none:
        pass
    assert alter(wire, path, topic, 0) == [ErrorCode.none]
    while directories(wire, topic) != {path: [(0, False)], other: []}:
        pass
    last = wire.call(fetch(topic, RECORDS)).responses[0].partitions[0]
    assert last.high_watermark == RECORDS + 1
    assert b"behind the move" in last.records


def test_a_group_commits_while_its_offsets_move_and_after(
    two_directories: str, wire: Wire, topic: str
) -> None:
    """A coordinator, too, continues with the log in the other directory."""
    committed = TopicPartition(topic, 0)
    offset = 0
    with Cluster(two_directories) as cluster:

        def commit() -> None:
            nonlocal offset
            offset += 1
            commit_offsets(cluster, topic, {committed: offset})
            assert committed_offsets(cluster, topic, [committed]) == {committed: offset}

        commit()
        partitions = sorted(cluster.topics([OFFSETS])[OFFSETS].leaders)
        for path in directories(wire, OFFSETS):
            assert set(alter(wire, path, OFFSETS, *partitions)) == {ErrorCode.none}
            while any(
                replicas
                for other, replicas in directories(wire, OFFSETS, *partitions).items()
                if other != path
            ):
                commit()
            commit()


def test_a_replica_that_is_there_stays(wire: Wire, topic: str) -> None:
    path, other = where(wire, topic)
    assert alter(wire, path, topic, 0) == [ErrorCode.none]
    assert directories(wire, topic) == {path: [(0, False)], other: []}


def test_what_cannot_be_moved(wire: Wire, topic: str) -> None:
    path, other = where(wire, topic)
    assert alter(wire, "/nowhere", topic, 0) == [ErrorCode.log_dir_not_found]
    assert alter(wire, other + "x", topic, 0) == [ErrorCode.log_dir_not_found]
    unknown = ErrorCode.unknown_topic_or_partition
    assert alter(wire, path, topic, 7) == [unknown]
    assert alter(wire, path, topic + "-absent", 0) == [unknown]
    assert alter(wire, path, "x" * 240, 0) == [ErrorCode.invalid_topic_exception]


def test_nothing_goes_into_a_cordoned_directory(
    two_directories: str, wire: Wire, topic: str
) -> None:
    path, other = where(wire, topic)
    refused, fine = [ErrorCode.invalid_replica_assignment], [ErrorCode.none]
    try:
        for cordoned, free in ((path, other), (other, path)):
            cordon(wire, cordoned)
            while alter(wire, cordoned, topic, 0) != refused:
                pass
            assert alter(wire, cordoned, topic + "-absent", 0) == refused
            while alter(wire, free, topic, 0) != fine:
                pass
            while where(wire, topic)[0] != free:
                pass
    finally:
        cordon(wire, "")


def cordon(wire: Wire, path: str) -> None:
    asking = MetadataRequest(topics=(), include_topic_authorized_operations=False)
    node_id = str(wire.call(asking).brokers[0].node_id)
    change = AlterableConfig(name="cordoned.log.dirs", config_operation=SET, value=path)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=node_id, configs=(change,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    assert wire.call(request).responses[0].error_code is ErrorCode.none


def test_a_topic_is_made_where_it_was_wished(
    two_directories: str, new_name: Callable[[], str], wire: Wire, topic: str
) -> None:
    for path in where(wire, topic):
        name = new_name()
        assert alter(wire, path, name, 0) == [ErrorCode.unknown_topic_or_partition]
        ConfluentClient(two_directories).create_topic(name, 1, {})
        while not any(directories(wire, name).values()):
            pass
        assert where(wire, name)[0] == path


def test_producers_of_a_partition_that_is_not_there(wire: Wire, topic: str) -> None:
    request = DescribeProducersRequest(
        topics=(
            TopicRequest(name=TopicName(topic), partition_indexes=(i32(0), i32(9))),
            TopicRequest(name=TopicName(topic + "-absent"), partition_indexes=(i32(0),)),
        )
    )
    found = {
        (topic_result.name, part.partition_index): part.error_code
        for topic_result in wire.call(request).topics
        for part in topic_result.partitions
    }
    assert found == {
        (topic, 0): ErrorCode.none,
        (topic, 9): ErrorCode.unknown_topic_or_partition,
        (topic + "-absent", 0): ErrorCode.unknown_topic_or_partition,
    }
