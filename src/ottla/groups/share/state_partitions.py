"""The share-partitions that have state at the share coordinator.

The group coordinator has the list and the share coordinator the state, so a change takes two steps:
state is created before a partition is listed, and removed after it is no longer listed. After a
failure the steps are repeated from the beginning; both are idempotent.
"""

from collections.abc import Iterable

from ottla.groups.partitions import Assignment, by_topic
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.records import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from ottla.groups.share.target import assignable_hash, subscribed_partitions
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode


def share_group(state: CoordinatorState, group_id: str) -> ShareGroup:
    if not group_id:
        raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")
    group = state.share_groups.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.group_id_not_found, f"there is no share group {group_id}")
    return group


def uninitialized(state: CoordinatorState, group_id: str) -> Assignment:
    """Subscribed partitions that cannot be assigned yet."""
    group = state.share_groups.get(group_id)
    if group is None:
        return frozenset()
    return subscribed_partitions(group, state.catalog) - group.initialized


def list_initialized(
    state: CoordinatorState, group_id: str, partitions: Assignment, now_ms: int
) -> Result[None]:
    """Their state was created: from now on they can be assigned."""
    group = share_group(state, group_id)
    if partitions <= group.initialized:
        return Result(None)
    initialized = group.initialized | partitions
    value = _value(state, group, initialized, now_ms)
    assignable = initialized & subscribed_partitions(group, state.catalog)
    epoch = group.epoch_record(group.epoch + 1, assignable_hash(assignable))
    return Result(None, (group.state_record(value), epoch))


def begin_alteration(state: CoordinatorState, group_id: str) -> Result[int]:
    """The state epoch for resetting offsets of a group without members.

    Creates the group if it does not exist.
    """
    exists = not group_id or state.group(group_id) is not None
    group = share_group(state, group_id) if exists else ShareGroup(group_id)
    group.validate_delete()
    epoch = group.epoch + 1
    return Result(epoch, (group.epoch_record(epoch, group.metadata_hash),))


def list_removed(
    state: CoordinatorState, group_id: str, partitions: Assignment, now_ms: int
) -> Result[None]:
    """In the new epoch, state that is left because its removal failed begins anew."""
    group = share_group(state, group_id)
    group.validate_delete()
    value = _value(state, group, group.initialized - partitions, now_ms)
    epoch = group.epoch_record(group.epoch + 1, group.metadata_hash)
    return Result(None, (group.state_record(value), epoch))


def _value(
    state: CoordinatorState, group: ShareGroup, initialized: Assignment, now_ms: int
) -> ShareGroupStatePartitionMetadataValue:
    known = {topic.topic_id: topic for topic in group.state_partitions.initialized_topics}

    def infos() -> Iterable[TopicPartitionsInfo]:
        for topic_id, partitions in by_topic(initialized).items():
            before = known.get(topic_id)
            name = state.catalog.topic_name(topic_id) or (before.topic_name if before else None)
            if name is not None:
                yield TopicPartitionsInfo(
                    topic_id=topic_id,
                    topic_name=name,
                    partitions=partitions,
                    create_timestamp=before.create_timestamp if before else now_ms,
                )

    return ShareGroupStatePartitionMetadataValue(initialized_topics=tuple(infos()))
