"""Every version of the admin APIs: the codec lifts each to one handler and back."""

from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.api_versions.v0.request import ApiVersionsRequest
from tests.clients.conftest import CreateTopic, await_value
from tests.clients.requests import TIMEOUT, batch, listed, produce
from tests.clients.requests import list_offsets as list_offsets_request
from tests.clients.requests import metadata as metadata_request
from tests.clients.versions import build_request
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode

NewName = Callable[[], str]

CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID = 19, 20, 21, 22
OFFSET_FOR_LEADER_EPOCH, DESCRIBE_CONFIGS, ALTER_CONFIGS, DESCRIBE_LOG_DIRS = 23, 32, 33, 35
CREATE_PARTITIONS, INCREMENTAL_ALTER_CONFIGS, DESCRIBE_CLUSTER = 37, 44, 60
DESCRIBE_TOPIC_PARTITIONS = 75

TOPIC_RESOURCE = 2
SET_OPERATION = 0

Call = Callable[[int, int, dict[str, Any]], Any]


@pytest.fixture
def call(wire: Wire) -> Call:
    """Call an API in a version, unless the broker does not list it."""
    served = {key.api_key: key for key in wire.call(ApiVersionsRequest()).api_keys}

    def call(api_key: int, version: int, values: dict[str, Any]) -> Any:
        claim = served.get(api_key)
        if claim is None or not claim.min_version <= version <= claim.max_version:
            pytest.skip(f"the broker does not claim version {version} of API {api_key}")
        return wire.call(build_request(api_key, version, values))

    return call


@pytest.mark.parametrize("version", range(2, 8))
def test_create_topics(call: Call, new_name: NewName, version: int) -> None:
    topic = {
        "name": new_name(),
        "num_partitions": 2,
        "replication_factor": 1,
        "assignments": (),
        "configs": ({"name": "retention.ms", "value": "1000"},),
    }
    values = {"topics": (topic,), "timeout": TIMEOUT, "validate_only": False}
    [answer] = call(CREATE_TOPICS, version, values).topics
    assert (answer.name, answer.error_code) == (topic["name"], ErrorCode.none)
    if version >= 5:
        assert answer.num_partitions == 2
        assert {c.name: c.value for c in answer.configs}["retention.ms"] == "1000"
    if version >= 7:
        assert answer.topic_id is not None


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics_by_name(call: Call, topic: str, version: int) -> None:
    values = {
        "topics": ({"name": topic, "topic_id": None},),
        "topic_names": (topic,),
        "timeout": TIMEOUT,
    }
    [answer] = call(DELETE_TOPICS, version, values).responses
    assert (answer.name, answer.error_code) == (topic, ErrorCode.none)


def test_delete_topics_by_id(call: Call, wire: Wire, topic: str) -> None:
    [described] = wire.call(metadata_request(topic)).topics
    values = {"topics": ({"name": None, "topic_id": described.topic_id},), "timeout": TIMEOUT}
    [answer] = call(DELETE_TOPICS, 6, values).responses
    assert answer.error_code == ErrorCode.none
    [gone] = wire.call(metadata_request(topic)).topics
    assert gone.error_code == ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize("version", range(4))
def test_create_partitions(call: Call, topic: str, version: int) -> None:
    wanted = {"name": topic, "count": 3, "assignments": None}
    values = {"topics": (wanted,), "timeout": TIMEOUT, "validate_only": False}
    [answer] = call(CREATE_PARTITIONS, version, values).results
    assert (answer.name, answer.error_code) == (topic, ErrorCode.none)


@pytest.mark.parametrize("version", range(3))
def test_delete_records(call: Call, wire: Wire, topic: str, version: int) -> None:
    wire.call(produce(topic, batch(b"a", b"b", b"c")))
    partition = {"partition_index": 0, "offset": -1}  # -1: up to the high watermark.
    values = {"topics": ({"name": topic, "partitions": (partition,)},), "timeout": TIMEOUT}
    [answer] = call(DELETE_RECORDS, version, values).topics[0].partitions
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.none, 3)
    assert listed(wire.call(list_offsets_request(topic, -2))).offset == 3


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("compact", ErrorCode.policy_violation),
        ("", ErrorCode.none),
        ("compact,delete", ErrorCode.none),
    ],
)
@pytest.mark.parametrize("offset", [0, 99])
def test_records_are_not_deleted_where_the_policy_is_only_to_compact(
    call: Call, create_topic: CreateTopic, policy: str, offset: int, expected: ErrorCode
) -> None:
    topic = create_topic(**{"cleanup.policy": policy})
    partition = {"partition_index": 0, "offset": offset}
    values = {"topics": ({"name": topic, "partitions": (partition,)},), "timeout": TIMEOUT}
    [answer] = call(DELETE_RECORDS, 2, values).topics[0].partitions
    if offset and not expected:
        expected = ErrorCode.offset_out_of_range
    assert answer.error_code == expected


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(call: Call, version: int) -> None:
    values: dict[str, object] = {"transactional_id": None, "transaction_timeout": TIMEOUT}
    values |= {"producer_id": -1, "producer_epoch": -1}

    def init() -> Any:
        loading = ErrorCode.coordinator_load_in_progress  # Kafka's has no producer ids yet.
        while (answer := call(INIT_PRODUCER_ID, version, values)).error_code == loading:
            pass
        return answer

    first, second = init(), init()
    assert first.error_code == ErrorCode.none
    assert first.producer_epoch == 0
    assert 0 <= first.producer_id < second.producer_id


@pytest.mark.parametrize("version", range(2, 5))
def test_offset_for_leader_epoch(call: Call, wire: Wire, topic: str, version: int) -> None:
    wire.call(produce(topic, batch(b"a", b"b")))
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    values = {"replica_id": -1, "topics": ({"topic": topic, "partitions": (partition,)},)}
    [answer] = call(OFFSET_FOR_LEADER_EPOCH, version, values).topics[0].partitions
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (ErrorCode.none, 0, 2)


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_configs(call: Call, create_topic: CreateTopic, version: int) -> None:
    topic = create_topic(**{"retention.ms": "1000"})
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": topic}
    resource |= {"configuration_keys": ("retention.ms", "segment.bytes")}
    values = {"resources": (resource,), "include_synonyms": True, "include_documentation": True}
    [answer] = call(DESCRIBE_CONFIGS, version, values).results
    assert answer.error_code == ErrorCode.none
    configs = {config.name: config for config in answer.configs}
    assert configs.keys() == {"retention.ms", "segment.bytes"}
    assert configs["retention.ms"].value == "1000"
    assert configs["retention.ms"].synonyms[0].name == "retention.ms"
    assert "log.segment.bytes" in [synonym.name for synonym in configs["segment.bytes"].synonyms]


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_all(call: Call, create_topic: CreateTopic, version: int) -> None:
    topic = create_topic(**{"retention.ms": "1000"})
    resource = {
        "resource_type": TOPIC_RESOURCE,
        "resource_name": topic,
        "configs": ({"name": "segment.bytes", "value": "2000000"},),
    }
    values = {"resources": (resource,), "validate_only": False}
    [answer] = call(ALTER_CONFIGS, version, values).responses
    assert answer.error_code == ErrorCode.none
    expected = {"retention.ms": "604800000", "segment.bytes": "2000000"}
    await_value(lambda: _values(call, topic), expected)


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize("validate_only", [True, False])
def test_incremental_alter_configs(
    call: Call, topic: str, version: int, validate_only: bool
) -> None:
    change = {"name": "retention.ms", "config_operation": SET_OPERATION, "value": "1000"}
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": topic, "configs": (change,)}
    values = {"resources": (resource,), "validate_only": validate_only}
    [answer] = call(INCREMENTAL_ALTER_CONFIGS, version, values).responses
    assert answer.error_code == ErrorCode.none
    expected = "604800000" if validate_only else "1000"
    await_value(lambda: _values(call, topic)["retention.ms"], expected)


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_log_dirs(call: Call, wire: Wire, topic: str, version: int) -> None:
    wire.call(produce(topic, batch(b"a")))
    values = {"topics": ({"topic": topic, "partitions": (0,)},)}
    [directory] = call(DESCRIBE_LOG_DIRS, version, values).results
    assert directory.error_code == ErrorCode.none
    [found] = [found for found in directory.topics if found.name == topic]
    assert found.partitions[0].partition_size > 0
    assert not found.partitions[0].is_future_key


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster(call: Call, version: int) -> None:
    values = {"include_cluster_authorized_operations": False, "endpoint_type": 1}
    values |= {"include_fenced_brokers": False}
    response = call(DESCRIBE_CLUSTER, version, values)
    assert response.error_code == ErrorCode.none
    assert response.controller_id in [broker.broker_id for broker in response.brokers]
    assert response.cluster_id


def test_describe_topic_partitions_in_pages(call: Call, create_topic: CreateTopic) -> None:
    topic = create_topic(partitions=3)
    values = {"topics": ({"name": topic},), "response_partition_limit": 2, "cursor": None}
    response = call(DESCRIBE_TOPIC_PARTITIONS, 0, values)
    [described] = response.topics
    assert [partition.partition_index for partition in described.partitions] == [0, 1]
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == (topic, 2)


def _values(call: Call, topic: str) -> dict[str, str | None]:
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": topic}
    resource |= {"configuration_keys": ("retention.ms", "segment.bytes")}
    [answer] = call(DESCRIBE_CONFIGS, 4, {"resources": (resource,)}).results
    return {config.name: config.value for config in answer.configs}
