"""The share-partitions that have state at the share coordinator.

The group coordinator has the list and the share coordinator the state, so a change takes steps.
State is created before a partition is listed. Before it is deleted, its topic moves to the topics
being deleted, where it stays until the state is gone. After a failure the steps are repeated from
the beginning; all are idempotent.
"""

from collections.abc import Iterable
from uuid import UUID

from ottla.groups.partitions import Assignment, all_partitions, by_topic
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.records import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)
from ottla.groups.share.target import assignable_hash, subscribed_partitions
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode


class StatePartitions:
    def __init__(self, state: CoordinatorState) -> None:
        self._state = state

    def group(self, group_id: str) -> ShareGroup:
        if not group_id:
            raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")
        group = self._state.share_groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.group_id_not_found, f"there is no share group {group_id}")
        return group

    def uninitialized(self, group_id: str) -> Assignment:
        """Subscribed partitions that cannot be assigned yet."""
        group = self._state.share_groups.get(group_id)
        if group is None:
            return frozenset()
        return subscribed_partitions(group, self._state.catalog) - group.initialized

    def list_initialized(self, group_id: str, partitions: Assignment, now_ms: int) -> Result[None]:
        """Their state was created: from now on they can be assigned."""
        group = self.group(group_id)
        if partitions <= group.initialized:
            return Result(None)
        initialized = group.initialized | partitions
        value = self._value(group, initialized, now_ms)
        assignable = initialized & subscribed_partitions(group, self._state.catalog)
        epoch = group.epoch_record(group.epoch + 1, assignable_hash(assignable))
        return Result(None, (group.state_record(value), epoch))

    def begin_alteration(self, group_id: str) -> Result[int]:
        """The state epoch for resetting offsets of a group without members.

        Creates the group if it does not exist.
        """
        exists = not group_id or self._state.group(group_id) is not None
        group = self.group(group_id) if exists else ShareGroup(group_id)
        group.validate_delete()
        epoch = group.epoch + 1
        return Result(epoch, (group.epoch_record(epoch, group.metadata_hash),))

    def with_state(self, group_id: str) -> Assignment:
        """Partitions that may have state: those of topics that are listed or being deleted.

        The share coordinator itself removes the state of topics that no longer exist.
        """
        group = self.group(group_id)
        deleting = {topic.topic_id for topic in group.state_partitions.deleting_topics}
        topic_ids = deleting | by_topic(group.initialized).keys()
        return frozenset(all_partitions(self._existing(topic_ids)))

    def begin_removal(self, group_id: str, partitions: Assignment, now_ms: int) -> Result[None]:
        """In the new epoch, state that is left because its removal failed begins anew."""
        group = self.group(group_id)
        group.validate_delete()
        removed = by_topic(partitions).keys()
        deleting = {topic.topic_id for topic in group.state_partitions.deleting_topics} | removed
        value = self._value(group, group.initialized - partitions, now_ms, deleting)
        epoch = group.epoch_record(group.epoch + 1, group.metadata_hash)
        return Result(None, (group.state_record(value), epoch))

    def end_removal(self, group_id: str, partitions: Assignment, now_ms: int) -> Result[None]:
        """Their state is gone, also that which a new member may have had created meanwhile."""
        group = self._state.share_groups.get(group_id)
        if group is None:
            return Result(None)
        deleting = {topic.topic_id for topic in group.state_partitions.deleting_topics}
        left = deleting - by_topic(partitions).keys()
        initialized = group.initialized - partitions
        record = group.state_record(self._value(group, initialized, now_ms, left))
        if initialized == group.initialized:
            return Result(None, (record,))
        assignable = initialized & subscribed_partitions(group, self._state.catalog)
        epoch = group.epoch_record(group.epoch + 1, assignable_hash(assignable))
        return Result(None, (record, epoch))

    def _existing(self, topic_ids: Iterable[UUID | None]) -> dict[UUID, int]:
        """Those topics that exist, with their partition counts."""
        counts = {}
        for topic_id in topic_ids:
            name = None if topic_id is None else self._state.catalog.topic_name(topic_id)
            count = None if name is None else self._state.catalog.partition_count(name)
            if topic_id is not None and count is not None:
                counts[topic_id] = count
        return counts

    def _value(
        self,
        group: ShareGroup,
        initialized: Assignment,
        now_ms: int,
        deleting: Iterable[UUID | None] | None = None,
    ) -> ShareGroupStatePartitionMetadataValue:
        """Unless given, the topics being deleted stay what they are."""
        before = group.state_partitions
        return ShareGroupStatePartitionMetadataValue(
            initialized_topics=tuple(self._infos(before, initialized, now_ms)),
            deleting_topics=before.deleting_topics if deleting is None else self._topics(deleting),
        )

    def _infos(
        self,
        before: ShareGroupStatePartitionMetadataValue,
        initialized: Assignment,
        now_ms: int,
    ) -> Iterable[TopicPartitionsInfo]:
        known = {topic.topic_id: topic for topic in before.initialized_topics}
        for topic_id, partitions in by_topic(initialized).items():
            info = known.get(topic_id)
            name = self._state.catalog.topic_name(topic_id) or (info.topic_name if info else None)
            if name is not None:
                yield TopicPartitionsInfo(
                    topic_id=topic_id,
                    topic_name=name,
                    partitions=partitions,
                    create_timestamp=info.create_timestamp if info else now_ms,
                )

    def _topics(self, topic_ids: Iterable[UUID | None]) -> tuple[TopicInfo, ...]:
        """Those that exist: nothing is left to delete of the others."""
        return tuple(
            TopicInfo(topic_id=topic_id, topic_name=self._state.catalog.topic_name(topic_id) or "")
            for topic_id in sorted(self._existing(topic_ids))
        )
