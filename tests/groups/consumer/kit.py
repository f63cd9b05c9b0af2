"""The records of a consumer group, and its description."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kio.schema.consumer_group_describe.v1.response import DescribedGroup
from tests.groups.kit import START_MS, Coordinator

from ottla.groups.consumer import records
from ottla.groups.modern import records as modern
from ottla.groups.modern.subscription import metadata_hash
from ottla.machine.record import Record

T_ID = UUID(int=1)
T_HASH = metadata_hash({T_ID: 4})
ALL_OF_T = {("t", 0), ("t", 1), ("t", 2), ("t", 3)}


def describe(coordinator: Coordinator, group: str = "g") -> DescribedGroup:
    (described,) = coordinator.run(
        lambda _: coordinator.machine.describe_consumer_groups([group])
    ).value
    assert isinstance(described, DescribedGroup)
    return described


def epoch_record(epoch: int, topics_hash: int = T_HASH) -> Record:
    return Record(
        records.ConsumerGroupMetadataKey(group_id="g"),
        records.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=topics_hash),
    )


def assignment_epoch_record(epoch: int) -> Record:
    return Record(
        records.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
        modern.TargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=START_MS),
    )


def member_record(member_id: str, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "client_id": "client",
        "client_host": "/host",
        "subscribed_topic_names": ("t",),
        "rebalance_timeout_ms": 60_000,
    }
    return Record(
        records.ConsumerGroupMemberMetadataKey(group_id="g", member_id=member_id),
        records.ConsumerGroupMemberMetadataValue(**(values | changes)),
    )


def topic(partitions: Iterable[int]) -> tuple[modern.TopicPartitions, ...]:
    found = tuple(sorted(partitions))
    return (modern.TopicPartitions(topic_id=T_ID, partitions=found),) if found else ()


def current(
    partitions: Iterable[int], since: Iterable[int] = ()
) -> tuple[records.CurrentTopicPartitions, ...]:
    found, epochs = tuple(sorted(partitions)), tuple(since)
    described = records.CurrentTopicPartitions(
        topic_id=T_ID, partitions=found, assignment_epochs=epochs
    )
    return (described,) if found else ()


def target_record(member_id: str, *partitions: int) -> Record:
    return Record(
        records.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id=member_id),
        modern.TargetAssignmentMemberValue(topic_partitions=topic(partitions)),
    )


def current_record(
    member_id: str,
    epoch: int,
    previous: int,
    assigned: Iterable[int],
    *,
    state: int = 0,
    revoking: Iterable[int] = (),
    since: Iterable[int] = (),
) -> Record:
    return Record(
        records.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member_id),
        records.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=previous,
            state=state,
            assigned_partitions=current(assigned, since),
            partitions_pending_revocation=current(revoking),
        ),
    )


def tombstones(member_id: str) -> tuple[Record, ...]:
    return tuple(
        Record(key(group_id="g", member_id=member_id), None)
        for key in (
            records.ConsumerGroupCurrentMemberAssignmentKey,
            records.ConsumerGroupTargetAssignmentMemberKey,
            records.ConsumerGroupMemberMetadataKey,
        )
    )
