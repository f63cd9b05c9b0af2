"""Streams groups over the wire; also run against Apache Kafka, with streams.version=1."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.streams_group_describe.v0.request import StreamsGroupDescribeRequest
from kio.schema.streams_group_heartbeat.v0.request import StreamsGroupHeartbeatRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32
from tests.clients.requests import milliseconds
from tests.clients.wire import Wire
from tests.groups.streams.kit import active, info, part, statuses, topology

from ottla.protocol.errors import ErrorCode

DEADLINE_S = 120
MISSING_INTERNAL_TOPICS = 3


@pytest.fixture
def wire(bootstrap: str, group_id: str) -> Iterator[Wire]:
    """Sends to the group's coordinator, once it serves the group."""
    find = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(group_id,))
    absent = replace(joining(group_id, "t"), member_epoch=i32(3), topology=None)
    with Wire(bootstrap) as wire:
        while wire.call(find).coordinators[0].error_code is not ErrorCode.none:
            pass
        while wire.call(absent).error_code is not ErrorCode.group_id_not_found:
            pass
        yield wire


def joining(group_id: str, topic: str) -> StreamsGroupHeartbeatRequest:
    again, state = f"{group_id}-again", f"{group_id}-state"
    return StreamsGroupHeartbeatRequest(
        group_id=GroupId(group_id),
        member_id="member",
        member_epoch=i32(0),
        endpoint_information_epoch=i32(0),
        rebalance_timeout=milliseconds(30_000),
        topology=topology(
            part("0", topic, sinks=[again]),
            part("1", repartitions=[info(again)], changelogs=[state]),
        ),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="process",
        client_tags=(),
        task_offsets=None,
        task_end_offsets=None,
    )


def test_internal_topics_are_created_and_tasks_assigned(
    wire: Wire, group_id: str, topic: str
) -> None:
    request = joining(group_id, topic)
    first = wire.call(request)
    assert first.error_code is ErrorCode.none, first.error_message
    assert MISSING_INTERNAL_TOPICS in statuses(first)
    request = replace(
        request,
        topology=None,
        rebalance_timeout=milliseconds(-1),
        process_id=None,
        client_tags=None,
    )
    epoch, deadline = first.member_epoch, time.monotonic() + DEADLINE_S
    tasks = active(first)
    while not tasks and time.monotonic() < deadline:
        response = wire.call(replace(request, member_epoch=epoch))
        assert response.error_code is ErrorCode.none, response.error_message
        epoch, tasks = response.member_epoch, active(response) or tasks
    assert tasks == [(name, index) for name in "01" for index in range(4)]
    (group,) = wire.call(
        StreamsGroupDescribeRequest(
            group_ids=(GroupId(group_id),), include_authorized_operations=False
        )
    ).groups
    assert (group.error_code, len(group.members)) == (ErrorCode.none, 1)
    assert partition_counts(wire, f"{group_id}-again", f"{group_id}-state") == [4, 4]


def partition_counts(wire: Wire, *topics: str) -> list[int]:
    response = wire.call(
        MetadataRequest(
            topics=tuple(
                MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in topics
            ),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
    )
    return [len(topic.partitions) for topic in response.topics]


def test_an_application_may_read_a_topic_that_it_writes(
    wire: Wire, group_id: str, topic: str
) -> None:
    again = f"{group_id}-again"
    loop = topology(part("0", topic, repartitions=[info(again)], sinks=[again]))
    joined = wire.call(replace(joining(group_id, topic), topology=loop))
    assert joined.error_code is ErrorCode.none, joined.error_message
    deadline = time.monotonic() + DEADLINE_S
    while partition_counts(wire, again) != [4]:
        assert time.monotonic() < deadline


def test_a_loop_that_nothing_else_feeds_is_refused(wire: Wire, group_id: str, topic: str) -> None:
    again = f"{group_id}-again"
    loop = topology(part("0", topic), part("1", repartitions=[info(again)], sinks=[again]))
    refused = wire.call(replace(joining(group_id, topic), topology=loop))
    assert refused.error_code is ErrorCode.streams_invalid_topology
