"""The first epochs of groups of the new protocols."""

from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32
from tests.clients.groups.test_streams_groups import joining as streams_joining
from tests.clients.requests import milliseconds
from tests.clients.wire import Wire

LOADING = {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
}


@pytest.fixture
def wire(bootstrap: str, group_id: str) -> Iterator[Wire]:
    find = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(group_id,))
    with Wire(bootstrap) as wire:
        while wire.call(find).coordinators[0].error_code is not ErrorCode.none:
            pass
        yield wire


def consumer_joining(group_id: str, topic: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=GroupId(group_id),
        member_id="member",
        member_epoch=i32(0),
        rebalance_timeout=milliseconds(30_000),
        subscribed_topic_names=(TopicName(topic),),
        topic_partitions=(),
    )


def share_joining(group_id: str, topic: str) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=GroupId(group_id),
        member_id="member",
        member_epoch=i32(0),
        rack_id=None,
        subscribed_topic_names=(TopicName(topic),),
    )


def call(wire: Wire, request: Any) -> Any:
    """Retries while the coordinator is loading."""
    while (response := wire.call(request)).error_code in LOADING:
        pass
    assert response.error_code is ErrorCode.none, response.error_message
    return response


@pytest.mark.parametrize("joining", [consumer_joining, streams_joining])
def test_the_first_member_of_a_group_has_epoch_two(
    wire: Wire, group_id: str, topic: str, joining: Any
) -> None:
    assert call(wire, joining(group_id, topic)).member_epoch == 2


def test_the_first_member_of_a_share_group_has_epoch_two_before_its_partitions_have_state(
    wire: Wire, group_id: str, topic: str
) -> None:
    """Kafka answers before the assignment; Ottla answers with it, which is one epoch later."""
    response = call(wire, share_joining(group_id, topic))
    has_partitions = bool(response.assignment and response.assignment.topic_partitions)
    assert response.member_epoch == (3 if has_partitions else 2)
