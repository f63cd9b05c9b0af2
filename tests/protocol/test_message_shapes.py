"""The meaning of old requests, and the responses to them."""

import datetime as dt
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions
from tests.protocol.old_clients import entity_of, lift, newest_response, old_request, project

from ottla.protocol.codec import newest_request_type, newest_response_type, write_request
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_fetch import OffsetFetchResponseGroup, OffsetFetchResponseTopics


def test_metadata_v0_asks_for_all_with_an_empty_array() -> None:
    assert lift(3, 0, old_request(3, 0, topics=())).topics is None


@pytest.mark.parametrize("version", [1, 8])
def test_metadata_asks_for_all_with_null_and_for_none_with_empty(version: int) -> None:
    values: dict[str, Any] = {"allow_auto_topic_creation": False} if version >= 4 else {}
    if version >= 8:
        values |= {
            "include_cluster_authorized_operations": True,
            "include_topic_authorized_operations": True,
        }
    assert lift(3, version, old_request(3, version, topics=None, **values)).topics is None
    lifted = lift(3, version, old_request(3, version, topics=(), **values))
    assert lifted.topics == ()
    assert lifted.allow_auto_topic_creation is (version < 4)
    assert lifted.include_cluster_authorized_operations is (version >= 8)


def test_metadata_names_and_ids_of_topics() -> None:
    topic = entity_of(load_request_schema(3, 4), "MetadataRequestTopic", name="t")
    lifted = lift(3, 4, old_request(3, 4, topics=(topic,), allow_auto_topic_creation=True))
    assert [(topic.name, topic.topic_id) for topic in lifted.topics] == [("t", None)]


def metadata_response(**values: Any) -> Any:
    nested = newest_response_type(3).__mro__[1]
    topic = entity_of(
        nested,
        "MetadataResponseTopic",
        error_code=ErrorCode.unknown_topic_id,
        name=None,
        topic_id=None,
        partitions=(
            entity_of(
                nested,
                "MetadataResponsePartition",
                error_code=ErrorCode.leader_not_available,
                partition_index=3,
                leader_id=-1,
                replica_nodes=(1, 2),
                isr_nodes=(1,),
            ),
        ),
    )
    return newest_response(
        3, brokers=(), controller_id=5, topics=(topic,), error_code=ErrorCode.none, **values
    )


def test_metadata_response_v0_has_no_controller_and_no_null_name() -> None:
    projected = project(3, 0, metadata_response())
    assert not hasattr(projected, "controller_id")
    (topic,) = projected.topics
    assert (topic.name, topic.error_code) == ("", ErrorCode.unknown_topic_id)
    (partition,) = topic.partitions
    assert partition.error_code is ErrorCode.leader_not_available
    assert (partition.replica_nodes, partition.isr_nodes) == ((1, 2), (1,))


def test_metadata_response_has_null_name_where_the_version_does() -> None:
    assert project(3, 11, metadata_response()).topics[0].name == ""
    assert project(3, 12, metadata_response()).topics[0].name is None


def test_metadata_response_v8_has_operations_on_the_cluster() -> None:
    assert project(3, 8, metadata_response()).cluster_authorized_operations == -(2**31)
    projected = project(3, 8, metadata_response(cluster_authorized_operations=6))
    assert projected.cluster_authorized_operations == 6


@pytest.mark.parametrize("version", [1, 5])
def test_delete_topics_by_name(version: int) -> None:
    request = old_request(20, version, topic_names=("a", "b"), timeout=dt.timedelta(seconds=3))
    lifted = lift(20, version, request)
    assert [(topic.name, topic.topic_id) for topic in lifted.topics] == [("a", None), ("b", None)]
    assert lifted.timeout == dt.timedelta(seconds=3)


@pytest.mark.parametrize("version", [0, 3])
def test_find_coordinator_of_one_key(version: int) -> None:
    values = {"key_type": 1} if version else {}
    lifted = lift(10, version, old_request(10, version, key="txn", **values))
    assert (lifted.coordinator_keys, lifted.key_type) == (("txn",), 1 if version else 0)
    coordinator = entity_of(
        newest_response_type(10),
        "Coordinator",
        key="txn",
        node_id=3,
        host="h",
        port=9,
        error_code=ErrorCode.coordinator_not_available,
        error_message="wait",
    )
    projected = project(10, version, newest_response(10, coordinators=(coordinator,)))
    assert (projected.node_id, projected.host, projected.port) == (3, "h", 9)
    assert projected.error_code is ErrorCode.coordinator_not_available
    assert getattr(projected, "error_message", "wait") == "wait"


def test_several_keys_cannot_be_asked_of_an_old_version() -> None:
    request = newest_request_type(10)(coordinator_keys=("a", "b"))
    with pytest.raises(ValueError, match="exactly one key"):
        write_request(10, 3, 1, None, request)


@pytest.mark.parametrize("version", [1, 2, 7])
def test_offset_fetch_of_one_group(version: int) -> None:
    topic = entity_of(
        load_request_schema(9, version),
        "OffsetFetchRequestTopic",
        name="t",
        partition_indexes=(0, 2),
    )
    (group,) = lift(9, version, old_request(9, version, group_id="g", topics=(topic,))).groups
    assert (group.group_id, group.member_id, group.member_epoch) == ("g", None, -1)
    (topic,) = group.topics
    assert (topic.name, topic.topic_id, topic.partition_indexes) == ("t", None, (0, 2))


@pytest.mark.parametrize("version", [2, 7])
def test_offset_fetch_of_all_topics(version: int) -> None:
    (group,) = lift(9, version, old_request(9, version, group_id="g", topics=None)).groups
    assert group.topics is None


def offset_fetch_response(error_code: ErrorCode) -> Any:
    partition = OffsetFetchResponsePartitions(
        partition_index=2,  # type: ignore[arg-type]
        committed_offset=40,  # type: ignore[arg-type]
        committed_leader_epoch=6,  # type: ignore[arg-type]
        metadata="m",
        error_code=ErrorCode.none,
    )
    topic = OffsetFetchResponseTopics(name="t", topic_id=None, partitions=(partition,))
    group = OffsetFetchResponseGroup(
        group_id="g",  # type: ignore[arg-type]
        topics=(topic,),
        error_code=error_code,
    )
    return newest_response(9, groups=(group,))


@pytest.mark.parametrize("version", range(1, 8))
def test_offset_fetch_response_of_one_group(version: int) -> None:
    projected = project(9, version, offset_fetch_response(ErrorCode.none))
    (topic,) = projected.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index, partition.committed_offset) == ("t", 2, 40)
    assert (partition.metadata, partition.error_code) == ("m", ErrorCode.none)
    assert getattr(partition, "committed_leader_epoch", 6) == 6


def test_offset_fetch_error_is_shown_where_the_version_can_say_it() -> None:
    error = offset_fetch_response(ErrorCode.not_coordinator)
    assert project(9, 2, error).error_code is ErrorCode.not_coordinator
    (topic,) = project(9, 1, error).topics
    assert topic.partitions[0].error_code is ErrorCode.not_coordinator


@pytest.mark.parametrize("version", [8, 9])
def test_offset_fetch_keeps_the_names_of_topics(version: int) -> None:
    projected = project(9, version, offset_fetch_response(ErrorCode.none))
    assert [topic.name for topic in projected.groups[0].topics] == ["t"]


def test_offset_commit_keeps_the_names_of_topics() -> None:
    type_: Any = load_request_schema(8, 2)
    partition = entity_of(
        type_,
        "OffsetCommitRequestPartition",
        partition_index=1,
        committed_offset=5,
        committed_metadata=None,
    )
    topic = entity_of(type_, "OffsetCommitRequestTopic", name="t", partitions=(partition,))
    lifted = lift(
        8,
        2,
        type_(
            group_id="g",
            generation_id_or_member_epoch=4,
            member_id="m",
            retention_time=dt.timedelta(seconds=9),
            topics=(topic,),
        ),
    )
    assert (lifted.topics[0].name, lifted.topics[0].topic_id) == ("t", None)
    assert lifted.topics[0].partitions[0].committed_leader_epoch == -1
    assert (lifted.retention_time, lifted.group_instance_id) == (dt.timedelta(seconds=9), None)


@pytest.mark.parametrize("version", [0, 2])
def test_leave_group_of_one_member(version: int) -> None:
    request = old_request(13, version, group_id="g", member_id="m")
    (member,) = lift(13, version, request).members
    assert (member.member_id, member.group_instance_id) == ("m", None)


@pytest.mark.parametrize("version", [0, 2])
def test_error_of_the_one_leaving_member_is_the_error_of_the_response(version: int) -> None:
    member = entity_of(
        newest_response_type(13),
        "MemberResponse",
        member_id="m",
        group_instance_id=None,
        error_code=ErrorCode.unknown_member_id,
    )
    response = newest_response(13, error_code=ErrorCode.none, members=(member,))
    assert project(13, version, response).error_code is ErrorCode.unknown_member_id
    response = newest_response(13, error_code=ErrorCode.not_coordinator, members=(member,))
    assert project(13, version, response).error_code is ErrorCode.not_coordinator


@pytest.mark.parametrize("version", range(4))
def test_add_partitions_to_one_transaction(version: int) -> None:
    type_: Any = load_request_schema(24, version)
    topic = entity_of(type_, "AddPartitionsToTxnTopic", name="t", partitions=(1, 2))
    (transaction,) = lift(
        24,
        version,
        type_(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=7,
            v3_and_below_producer_epoch=3,
            v3_and_below_topics=(topic,),
        ),
    ).transactions
    assert (transaction.transactional_id, transaction.verify_only) == ("x", False)
    assert (transaction.producer_id, transaction.producer_epoch) == (7, 3)
    assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", (1, 2))]


def test_join_group_v0_has_one_timeout_for_both() -> None:
    request = old_request(
        11,
        0,
        group_id="g",
        session_timeout=dt.timedelta(seconds=8),
        member_id="",
        protocol_type="consumer",
        protocols=(),
    )
    assert lift(11, 0, request).rebalance_timeout == dt.timedelta(seconds=8)


def test_join_group_response_without_a_protocol() -> None:
    response = newest_response(
        11,
        error_code=ErrorCode.member_id_required,
        protocol_name=None,
        leader="",
        member_id="m",
        members=(),
    )
    assert project(11, 0, response).protocol_name == ""
    assert project(11, 7, response).protocol_name is None


@pytest.mark.parametrize("version", [4, 11, 14])
def test_replica_id_of_a_follower(version: int) -> None:
    values: dict[str, Any] = {"forgotten_topics_data": ()} if version >= 7 else {}
    request = old_request(
        1,
        version,
        replica_id=6,
        max_wait=dt.timedelta(0),
        min_bytes=1,
        topics=(),
        **values,
    )
    lifted = lift(1, version, request)
    assert (lifted.replica_state.replica_id, lifted.replica_state.replica_epoch) == (6, -1)


def test_api_versions_before_v4_hides_features_with_a_lowest_version_of_0() -> None:
    features = [
        entity_of(
            newest_response_type(18),
            "SupportedFeatureKey",
            name=name,
            min_version=low,
            max_version=2,
        )
        for name, low in (("a", 0), ("b", 1))
    ]
    response = newest_response(
        18, error_code=ErrorCode.none, api_keys=(), supported_features=tuple(features)
    )
    assert [feature.name for feature in project(18, 3, response).supported_features] == ["b"]
    assert [feature.name for feature in project(18, 4, response).supported_features] == ["a", "b"]


def test_list_offsets_v1_reads_uncommitted() -> None:
    lifted = lift(2, 1, old_request(2, 1, replica_id=-1, topics=()))
    assert (lifted.isolation_level, lifted.timeout) == (0, dt.timedelta(0))


def test_describe_log_dirs_of_all_topics() -> None:
    assert lift(35, 1, old_request(35, 1, topics=None)).topics is None


def test_create_topics_response_drops_what_old_clients_do_not_know() -> None:
    result = entity_of(
        newest_response_type(19),
        "CreatableTopicResult",
        name="t",
        topic_id=None,
        error_code=ErrorCode.invalid_replication_factor,
        error_message="too many",
        configs=None,
    )
    (projected,) = project(19, 2, newest_response(19, topics=(result,))).topics
    assert (projected.name, projected.error_message) == ("t", "too many")
    assert projected.error_code is ErrorCode.invalid_replication_factor


def test_update_features_v0_allows_a_downgrade_or_not() -> None:
    type_: Any = load_request_schema(57, 0)
    updates = tuple(
        entity_of(
            type_, "FeatureUpdateKey", feature="f", max_version_level=1, allow_downgrade=allow
        )
        for allow in (False, True)
    )
    lifted = lift(57, 0, type_(feature_updates=updates))
    assert [update.upgrade_type for update in lifted.feature_updates] == [1, 2]
