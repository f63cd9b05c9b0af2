"""The whole ApiVersions response, compared with Apache Kafka's."""

import base64
from collections.abc import Callable

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.static.primitive import i32
from tests.clients.api_facts import API_VERSIONS, FEATURES, FINALIZED
from tests.clients.requests import TIMEOUT
from tests.clients.versions import build_request
from tests.clients.wire import Wire

from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequestV5

API_VERSIONS_KEY, WITH_DESTINATION = 18, 5
ASKING = ApiVersionsRequest(client_software_name="facts", client_software_version="1")
OWN_KEYS_FROM = 10_000
LIST_OFFSETS, INIT_PRODUCER_ID, DESCRIBE_CLUSTER = 2, 22, 60
MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -3, -4, -5, -6
UPDATE_FEATURES, CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE = 57, 69, 77
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
STREAMS_GROUP_DESCRIBE = 89
# ApiVersions and TxnOffsetCommit: Kafka 4.3 has one version less.
OF_KAFKA_4_4 = {18: (0, 5), 28: (0, 6)}
# Always served here; in Kafka only with a metrics receiver (KIP-714).
TELEMETRY = {71, 72}


def test_every_api_is_told_as_kafka_tells_it(wire: Wire) -> None:
    answer = wire.call(ASKING)
    spans = {
        int(api.api_key): (int(api.min_version), int(api.max_version)) for api in answer.api_keys
    }
    is_own = max(spans) >= OWN_KEYS_FROM
    known = {
        key: span for key, span in spans.items() if key < OWN_KEYS_FROM and key not in TELEMETRY
    }
    expected = dict(API_VERSIONS)
    if is_own:
        expected[INIT_PRODUCER_ID] = (0, 6)  # Two-phase commit is on by default.
        expected |= OF_KAFKA_4_4
    assert known == expected


def test_a_client_that_meant_another_broker_is_sent_back_to_bootstrap(wire: Wire) -> None:
    versions = {api.api_key: api.max_version for api in wire.call(ASKING).api_keys}
    if versions[API_VERSIONS_KEY] < WITH_DESTINATION:
        pytest.skip("Kafka before 4.4")
    values = {"include_cluster_authorized_operations": False, "endpoint_type": 1}
    values |= {"include_fenced_brokers": False}
    cluster = wire.call(build_request(DESCRIBE_CLUSTER, 2, values))
    node_id = cluster.brokers[0].broker_id

    def ask(cluster_id: str, node_id: int) -> ApiVersionsResponse:
        meant = ApiVersionsRequestV5(
            client_software_name="facts",
            client_software_version="1",
            cluster_id=cluster_id,
            node_id=i32(node_id),
        )
        wire.send_bytes(write_request(API_VERSIONS_KEY, WITH_DESTINATION, 5, "facts", meant))
        frame = memoryview(wire.receive_frame())
        answer: ApiVersionsResponse = read_response(API_VERSIONS_KEY, WITH_DESTINATION, frame)[1]
        return answer

    assert {api.api_key for api in ask(cluster.cluster_id, node_id).api_keys} == versions.keys()
    for other in (ask(cluster.cluster_id, node_id + 1), ask("other", node_id)):
        assert (other.error_code, other.api_keys) == (ErrorCode.rebootstrap_required, ())


def test_every_feature_is_told_as_kafka_tells_it(wire: Wire) -> None:
    answer = wire.call(ASKING)
    is_own = max(api.api_key for api in answer.api_keys) >= OWN_KEYS_FROM
    expected = dict(FEATURES)
    if is_own:
        # In-sync sets may always be empty.
        expected["eligible.leader.replicas.version"] = (1, 1)
    supported = {
        feature.name: (feature.min_version, feature.max_version)
        for feature in answer.supported_features
    }
    assert supported == expected
    levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    assert levels == FINALIZED


@pytest.mark.parametrize(
    ("feature", "describe_key"),
    [
        ("group.version", CONSUMER_GROUP_DESCRIBE),
        ("share.version", SHARE_GROUP_DESCRIBE),
        ("streams.version", STREAMS_GROUP_DESCRIBE),
    ],
)
def test_a_protocol_of_groups_is_served_only_while_its_feature_is_on(
    wire: Wire, new_name: Callable[[], str], feature: str, describe_key: int
) -> None:
    group = new_name()
    assert update(wire, feature, 0, SAFE_DOWNGRADE) == ErrorCode.none
    try:
        await_served(wire, describe_key, group, expected=False)
    finally:
        assert update(wire, feature, 1, UPGRADE) == ErrorCode.none
    await_served(wire, describe_key, group, expected=True)


@pytest.mark.parametrize(
    ("feature", "level", "kind"),
    [
        ("group.version", 0, UPGRADE),
        ("group.version", 2, UPGRADE),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 29, UNSAFE_DOWNGRADE),
        ("metadata.version", 31, UPGRADE),
        ("kraft.version", 0, UNSAFE_DOWNGRADE),
        ("nobody.version", 1, UPGRADE),
    ],
)
def test_levels_that_are_refused(wire: Wire, feature: str, level: int, kind: int) -> None:
    assert update(wire, feature, level, kind) == ErrorCode.invalid_update_version


@pytest.mark.parametrize("feature", ["metadata.version", "kraft.version"])
def test_the_present_level_can_be_asked_for(wire: Wire, feature: str) -> None:
    assert update(wire, feature, FINALIZED[feature], UPGRADE) == ErrorCode.none


def update(wire: Wire, feature: str, level: int, kind: int) -> ErrorCode:
    change = {"feature": feature, "max_version_level": level, "upgrade_type": kind}
    values = {"timeout": TIMEOUT, "feature_updates": (change,), "validate_only": False}
    return ErrorCode(wire.call(build_request(UPDATE_FEATURES, 2, values)).error_code)


def await_served(wire: Wire, describe_key: int, group: str, *, expected: bool) -> None:
    """A broker applies a level a moment after the controller has answered."""
    request = {"group_ids": (group,), "include_authorized_operations": False}
    _, version = API_VERSIONS[describe_key]
    while True:
        [answer] = wire.call(build_request(describe_key, version, request)).groups
        if (answer.error_code != ErrorCode.unsupported_version) is expected:
            return


@pytest.mark.parametrize(
    ("version", "timestamp", "expected"),
    [
        (6, MAX_TIMESTAMP, ErrorCode.unsupported_version),
        (7, MAX_TIMESTAMP, ErrorCode.none),
        (7, EARLIEST_LOCAL, ErrorCode.unsupported_version),
        (8, EARLIEST_LOCAL, ErrorCode.none),
        (8, LATEST_TIERED, ErrorCode.unsupported_version),
        (9, LATEST_TIERED, ErrorCode.none),
        (10, EARLIEST_PENDING_UPLOAD, ErrorCode.unsupported_version),
        (11, EARLIEST_PENDING_UPLOAD, ErrorCode.none),
        (11, -7, ErrorCode.unsupported_version),
    ],
)
def test_the_places_in_a_partition_that_negative_timestamps_stand_for(
    wire: Wire, topic: str, version: int, timestamp: int, expected: ErrorCode
) -> None:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    values = {"replica_id": -1, "isolation_level": 0, "timeout": TIMEOUT}
    values |= {"topics": ({"name": topic, "partitions": (partition,)},)}
    [answer] = wire.call(build_request(LIST_OFFSETS, version, values)).topics[0].partitions
    local = timestamp == EARLIEST_LOCAL and expected == ErrorCode.none
    assert (answer.error_code, answer.offset) == (expected, 0 if local else -1)


def test_the_id_of_a_cluster_is_a_uuid_in_22_characters(wire: Wire) -> None:
    values = {"include_cluster_authorized_operations": False, "endpoint_type": 1}
    values |= {"include_fenced_brokers": False}
    cluster_id = wire.call(build_request(DESCRIBE_CLUSTER, 2, values)).cluster_id
    assert len(cluster_id) == 22
    assert len(base64.urlsafe_b64decode(cluster_id + "==")) == 16
