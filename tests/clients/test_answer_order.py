"""The order of topics in responses, and which topics a top-level error leaves out."""

import uuid
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.metadata.v13 import request as metadata
from kio.schema.offset_commit.v9 import request as commit_by_name
from kio.schema.offset_commit.v10 import request as commit_by_id
from kio.schema.offset_fetch.v9 import request as fetch_by_name
from kio.schema.offset_fetch.v10 import request as fetch_by_id
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i64
from tests.clients.conftest import CreateTopic
from tests.clients.requests import milliseconds
from tests.clients.wire import Wire

NONE = ErrorCode.none
UNKNOWN = ErrorCode.unknown_topic_or_partition
UNKNOWN_ID = ErrorCode.unknown_topic_id


@pytest.fixture
def group_id() -> GroupId:
    return GroupId(f"group-{uuid.uuid4()}")


@pytest.fixture
def wire(bootstrap: str, group_id: str) -> Iterator[Wire]:
    """Waits until the group's coordinator serves it."""
    find = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(group_id,))
    asked = fetch_by_name.OffsetFetchRequest(
        groups=(group_asked(fetch_by_name, group_id, ()),), require_stable=False
    )
    with Wire(bootstrap) as wire:
        while wire.call(find).coordinators[0].error_code is not NONE:
            pass
        while wire.call(asked).groups[0].error_code is not NONE:
            pass
        yield wire


@pytest.fixture
def topics(create_topic: CreateTopic) -> tuple[TopicName, TopicName]:
    return TopicName(create_topic(2)), TopicName(create_topic(2))


def group_asked(module: Any, group_id: str, topics: Any, **who: Any) -> Any:
    return module.OffsetFetchRequestGroup(group_id=group_id, topics=topics, **who)


def topics_by(wire: Wire, names: Any = (), ids: Any = ()) -> list[tuple[Any, Any]]:
    """Names or ids with their errors."""
    asked = tuple(metadata.MetadataRequestTopic(topic_id=None, name=name) for name in names)
    asked += tuple(metadata.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids)
    response = wire.call(
        metadata.MetadataRequest(
            topics=asked,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    )
    return [(topic.topic_id if ids else topic.name, topic.error_code) for topic in response.topics]


def ids_of(wire: Wire, *names: TopicName) -> list[UUID]:
    response = wire.call(
        metadata.MetadataRequest(
            topics=tuple(metadata.MetadataRequestTopic(topic_id=None, name=name) for name in names),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    )
    found = {topic.name: topic.topic_id for topic in response.topics}
    return [found[name] for name in names]


def test_metadata_tells_unknown_names_last_and_each_once(
    wire: Wire, topics: tuple[TopicName, TopicName]
) -> None:
    first, second = topics
    assert topics_by(wire, ["absent", first, first, second]) == [
        (first, NONE),
        (second, NONE),
        ("absent", UNKNOWN),
    ]


def test_metadata_tells_unknown_ids_first_and_passes_over_names(
    wire: Wire, topics: tuple[TopicName, TopicName]
) -> None:
    (first,) = ids_of(wire, topics[0])
    absent = uuid.uuid4()
    assert topics_by(wire, [topics[1]], [first, absent]) == [(absent, UNKNOWN_ID), (first, NONE)]


def committing(module: Any, group_id: str, *topics: tuple[dict[str, Any], tuple[int, ...]]) -> Any:
    return module.OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=i32(-1),
        member_id="",
        group_instance_id=None,
        topics=tuple(
            module.OffsetCommitRequestTopic(
                **named,
                partitions=tuple(
                    module.OffsetCommitRequestPartition(
                        partition_index=i32(index),
                        committed_offset=i64(3),
                        committed_leader_epoch=i32(-1),
                        committed_metadata=None,
                    )
                    for index in partitions
                ),
            )
            for named, partitions in topics
        ),
    )


def errors_of(response: Any, key: str) -> list[tuple[Any, list[tuple[int, ErrorCode]]]]:
    return [
        (
            getattr(topic, key),
            [(partition.partition_index, partition.error_code) for partition in topic.partitions],
        )
        for topic in response.topics
    ]


def test_a_commit_tells_what_does_not_exist_first(
    wire: Wire, group_id: GroupId, topics: tuple[TopicName, TopicName]
) -> None:
    first, second = topics
    response = wire.call(
        committing(
            commit_by_name,
            group_id,
            ({"name": first}, (0,)),
            ({"name": second}, (0, 7, 1)),
            ({"name": TopicName("absent")}, (0,)),
        )
    )
    assert errors_of(response, "name") == [
        (second, [(7, UNKNOWN), (0, NONE), (1, NONE)]),
        ("absent", [(0, UNKNOWN)]),
        (first, [(0, NONE)]),
    ]


def test_a_commit_by_id_tells_unknown_ids_first(
    wire: Wire, group_id: GroupId, topics: tuple[TopicName, TopicName]
) -> None:
    (first,) = ids_of(wire, topics[0])
    absent = uuid.uuid4()
    response = wire.call(
        committing(
            commit_by_id, group_id, ({"topic_id": first}, (0,)), ({"topic_id": absent}, (0,))
        )
    )
    assert errors_of(response, "topic_id") == [(absent, [(0, UNKNOWN_ID)]), (first, [(0, NONE)])]


def test_a_fetch_by_id_tells_unknown_ids_last(
    wire: Wire, group_id: GroupId, topics: tuple[TopicName, TopicName]
) -> None:
    (first,) = ids_of(wire, topics[0])
    absent = uuid.uuid4()
    asked = tuple(
        fetch_by_id.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=(i32(0),))
        for topic_id in (absent, first)
    )
    request = fetch_by_id.OffsetFetchRequest(
        groups=(group_asked(fetch_by_id, group_id, asked),), require_stable=False
    )
    (group,) = wire.call(request).groups
    assert errors_of(group, "topic_id") == [(first, [(0, NONE)]), (absent, [(0, UNKNOWN_ID)])]


def test_an_error_of_a_group_leaves_its_topics_out(
    wire: Wire, group_id: GroupId, topics: tuple[TopicName, TopicName]
) -> None:
    joining = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="member",
        member_epoch=i32(0),
        rebalance_timeout=milliseconds(30_000),
        subscribed_topic_names=topics,
        topic_partitions=(),
    )
    assert wire.call(joining).error_code is NONE
    asked = fetch_by_name.OffsetFetchRequestTopics(name=topics[0], partition_indexes=(i32(0),))
    stranger = {"member_id": "stranger", "member_epoch": i32(1)}
    request = fetch_by_name.OffsetFetchRequest(
        groups=(group_asked(fetch_by_name, group_id, (asked,), **stranger),), require_stable=False
    )
    (group,) = wire.call(request).groups
    assert (group.error_code, group.topics) == (ErrorCode.unknown_member_id, ())
