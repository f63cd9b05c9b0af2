import pytest
from kio.schema.describe_log_dirs.v5.request import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.controller.test_topics import creation, topic

from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.describe_log_dirs import handle as handle_describe_log_dirs
from ottla.handlers.refusals import error_response
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.describe_log_dirs import WHOLE_LOG
from ottla.protocol.topics import TopicPartition
from ottla.storage.damage import Damage
from ottla.storage.errors import CorruptLog


def asking(**topics):
    return DescribeLogDirsRequest(
        topics=tuple(
            DescribableLogDirTopic(topic=name, partitions=partitions)
            for name, partitions in topics.items()
        )
    )


ALL = DescribeLogDirsRequest(topics=None)


@pytest.fixture
def logs(node):
    node.call(handle_create_topics, creation(topic("a", 2, 1), topic("b", 1, 1)))
    for name, index in (("b", 0), ("a", 1), ("a", 0)):
        node.append(name, index, 1000)
    return node


def described(node, request):
    (result,) = node.call(handle_describe_log_dirs, request).results
    return {
        topic_result.name: [part.partition_index for part in topic_result.partitions]
        for topic_result in result.topics
    }


def test_null_is_everything(logs):
    assert described(logs, ALL) == {"a": [0, 1], "b": [0]}


def test_named_partitions_only(logs):
    assert described(logs, asking(a=(1, 7), x=(0,))) == {"a": [1]}


def test_sizes_and_space(logs, monkeypatch):
    monkeypatch.setattr(logs.disk, "space", lambda _: (1000, 400))
    (result,) = logs.call(handle_describe_log_dirs, ALL).results
    assert (result.log_dir, result.total_bytes, result.usable_bytes) == ("/data", 1000, 400)
    partition = result.topics[0].partitions[0]
    assert partition.partition_size == logs.partition("a", 0).log.size > 0
    assert partition.offset_lag == 0


def test_damage_is_told_by_partition(logs):
    log = logs.partition("a", 1).log
    (segment,) = log.segments
    segment.damage = (Damage(segment.path, 0, segment.size, 0, 1, "a wrong checksum"),)
    logs.broker.logs._damaged[log] = None
    corrupt = {TopicPartition("b", 0): CorruptLog("/b-0/0.log", 0, 0, "all of it")}
    logs.broker.logs.corrupt.all.update(corrupt)
    found = logs.call(handle_describe_log_dirs, ALL).damage
    assert [
        (damage.topic, damage.partition_index, damage.first_offset, damage.last_offset)
        for damage in found
    ] == [
        ("a", 1, 0, 0),
        ("b", 0, WHOLE_LOG, WHOLE_LOG),
    ]
    assert [
        damage.topic for damage in logs.call(handle_describe_log_dirs, asking(b=(0,))).damage
    ] == ["b"]


def test_an_offline_directory_says_so(logs):
    (log_directory,) = logs.broker.logs.log_dirs
    log_directory.on_error(OSError(5, "input/output error"))
    (result,) = logs.call(handle_describe_log_dirs, ALL).results
    assert (result.error_code, result.topics) == (ErrorCode.kafka_storage_error, ())


def test_a_refusal():
    error = ApiError(ErrorCode.unknown_server_error)
    assert error_response(ALL, error).error_code is ErrorCode.unknown_server_error
