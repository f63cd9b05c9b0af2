"""Deleting share groups and their offsets while a share coordinator is away."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import pytest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_share_group_offsets.v0 import request as delete_offsets
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32
from tests.controller.test_topics import creation, topic
from tests.kits.single_node import SingleNode
from tests.kits.world import until

from ottla.coordination.share_persister import SharePersister
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareState
from ottla.handlers.broker import Broker
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.delete_groups import handle as handle_delete_groups
from ottla.handlers.delete_share_group_offsets import handle as handle_delete_offsets
from ottla.handlers.find_coordinator import FindCoordinatorRequest
from ottla.handlers.find_coordinator import handle as handle_find_coordinator
from ottla.handlers.share_group_heartbeat import handle as handle_heartbeat
from ottla.protocol.errors import ApiError, ErrorCode

GROUP, TOPIC = "g", "orders"
GROUPS = 0


class AwayFromSecond(NamedTuple):
    """The coordinator of one partition is away, and that of the other is not."""

    persister: SharePersister

    async def delete(self, key: SharePartitionKey) -> None:
        if key.partition:
            raise ApiError(ErrorCode.coordinator_not_available, "it is away")
        await self.persister.delete(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.persister, name)


@pytest.fixture
def node(start_node: Callable[..., SingleNode]) -> SingleNode:
    """A share group without members has state in both partitions of its topic."""
    node = start_node(
        offsets_topic_num_partitions="1",
        share_coordinator_state_topic_num_partitions="1",
        share_coordinator_state_topic_replication_factor="1",
    )
    node.call(handle_create_topics, creation(topic(TOPIC, 2, 1)))
    node.call(
        handle_find_coordinator,
        FindCoordinatorRequest(key_type=GROUPS, coordinator_keys=(GROUP,)),
    )
    node.run(until(lambda: is_loaded(node)))
    heartbeat(node, 0)
    heartbeat(node, -1)
    assert len(states(node)) == 2
    return node


def is_loaded(node: SingleNode) -> bool:
    try:
        return bool(node.broker.groups.find(GROUP).machine)
    except ApiError:
        return False


def heartbeat(node: SingleNode, epoch: int) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id=GroupId(GROUP),
        member_id="member",
        member_epoch=i32(epoch),
        subscribed_topic_names=(TopicName(TOPIC),) if epoch == 0 else None,
    )
    return node.call(handle_heartbeat, request)


def states(node: SingleNode) -> dict[int, ShareState]:
    """By partition."""
    return {
        key.partition: machine._states[key]
        for machine in (runtime.machine for runtime in node.broker.share.coordinators.all())
        for key in machine.share_partitions()
    }


def with_away_coordinator(broker: Broker) -> Broker:
    away = cast("SharePersister", AwayFromSecond(broker.share.persister))
    return dataclasses.replace(broker, share=dataclasses.replace(broker.share, persister=away))


def delete_group(node: SingleNode) -> ErrorCode:
    request = DeleteGroupsRequest(groups_names=(GroupId(GROUP),))
    return cast("ErrorCode", node.call(handle_delete_groups, request).results[0].error_code)


def delete_topic_offsets(node: SingleNode) -> ErrorCode:
    asked = delete_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=TopicName(TOPIC))
    request = delete_offsets.DeleteShareGroupOffsetsRequest(
        group_id=GroupId(GROUP), topics=(asked,)
    )
    return cast("ErrorCode", node.call(handle_delete_offsets, request).responses[0].error_code)


def test_deleting_a_group_again_deletes_the_state_that_was_left(node: SingleNode) -> None:
    broker = node.broker
    node.use(with_away_coordinator(broker))
    assert delete_group(node) is ErrorCode.coordinator_not_available
    assert list(states(node)) == [1]

    node.use(broker)
    assert delete_group(node) is ErrorCode.none
    assert states(node) == {}
    assert not broker.groups.find(GROUP).machine.has_share_group(GROUP)


def test_deleting_offsets_again_deletes_the_state_that_was_left(node: SingleNode) -> None:
    broker = node.broker
    node.use(with_away_coordinator(broker))
    with pytest.raises(ApiError, match="away"):
        delete_topic_offsets(node)

    node.use(broker)
    assert delete_topic_offsets(node) is ErrorCode.none
    assert states(node) == {}
    assert delete_topic_offsets(node) is ErrorCode.unknown_topic_or_partition


def test_a_member_that_joins_after_a_failed_deletion_begins_anew(node: SingleNode) -> None:
    before = states(node)[1]
    broker = node.broker
    node.use(with_away_coordinator(broker))
    delete_group(node)

    response = heartbeat(node, 0)

    (assigned,) = response.assignment.topic_partitions
    assert assigned.partitions == (0, 1)
    assert states(node)[1].state_epoch > before.state_epoch
