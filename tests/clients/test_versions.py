"""Every version of the data APIs, from the oldest that Kafka 4 serves to the newest."""

from typing import Any
from uuid import UUID

import pytest
from kio.schema.api_versions.v0.request import ApiVersionsRequest
from tests.clients.requests import TIMEOUT, batch, metadata, milliseconds
from tests.clients.versions import build_request
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
TOPIC_ID_PRODUCE_VERSION, TOPIC_ID_FETCH_VERSION, TOPIC_ID_METADATA_VERSION = 13, 13, 10


@pytest.fixture
def topic_id(wire: Wire, topic: str) -> UUID:
    return wire.call(metadata(topic)).topics[0].topic_id  # type: ignore[no-any-return]


def skip_if_not_served(wire: Wire, api_key: int, version: int) -> None:
    """The broker must serve the versions that it lists."""
    served = {key.api_key: key for key in wire.call(ApiVersionsRequest()).api_keys}
    if not served[api_key].min_version <= version <= served[api_key].max_version:
        pytest.skip(f"the broker does not claim version {version}")


@pytest.mark.parametrize("version", range(5))
def test_api_versions(wire: Wire, version: int) -> None:
    skip_if_not_served(wire, API_VERSIONS, version)
    values = {"client_software_name": "wire-test", "client_software_version": "1"}
    response = wire.call(build_request(API_VERSIONS, version, values))
    assert response.error_code == ErrorCode.none
    assert {PRODUCE, FETCH, METADATA} <= {key.api_key for key in response.api_keys}


@pytest.mark.parametrize("version", range(14))
def test_metadata(wire: Wire, topic: str, version: int) -> None:
    skip_if_not_served(wire, METADATA, version)
    values: dict[str, Any] = {
        "topics": ({"name": topic, "topic_id": None},),
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    response = wire.call(build_request(METADATA, version, values))
    [described] = response.topics
    assert (described.error_code, described.name) == (ErrorCode.none, topic)
    [partition] = described.partitions
    assert partition.leader_id == response.brokers[0].node_id


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets(wire: Wire, topic: str, version: int) -> None:
    skip_if_not_served(wire, LIST_OFFSETS, version)
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    values = {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": ({"name": topic, "partitions": (partition,)},),
        "timeout": milliseconds(1000),
    }
    response = wire.call(build_request(LIST_OFFSETS, version, values))
    [listed] = response.topics[0].partitions
    assert (listed.error_code, listed.offset) == (ErrorCode.none, 0)


@pytest.mark.parametrize("version", range(3, 14))
def test_produce(wire: Wire, topic: str, topic_id: UUID, version: int) -> None:
    skip_if_not_served(wire, PRODUCE, version)
    records = batch(b"value")
    data = {"name": topic, "topic_id": topic_id}
    values = {
        "transactional_id": None,
        "acks": -1,
        "timeout": TIMEOUT,
        "topic_data": ({**data, "partition_data": ({"index": 0, "records": records},)},),
    }
    response = wire.call(build_request(PRODUCE, version, values))
    [answer] = response.responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch(wire: Wire, topic: str, topic_id: UUID, version: int) -> None:
    skip_if_not_served(wire, FETCH, version)
    wire.call(build_request(PRODUCE, 9, _produce_values(topic)))
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    partition |= {"current_leader_epoch": -1}
    values = {
        "replica_id": -1,
        "max_wait": milliseconds(0),
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": ({"topic": topic, "topic_id": topic_id, "partitions": (partition,)},),
        "forgotten_topics_data": (),
    }
    response = wire.call(build_request(FETCH, version, values))
    [answer] = response.responses[0].partitions
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.none, 1)
    assert answer.records[21:] == batch(b"value")[21:]  # Everything that the checksum covers.


def _produce_values(topic: str) -> dict[str, Any]:
    partition = {"index": 0, "records": batch(b"value")}
    return {
        "transactional_id": None,
        "acks": -1,
        "timeout": TIMEOUT,
        "topic_data": ({"name": topic, "partition_data": (partition,)},),
    }
