"""The range assignor: every subscriber of a topic gets consecutive partitions.

Members are ordered by instance id or member id, so that with equal subscriptions and partition
counts a member owns the same partition numbers of every topic.
"""

from uuid import UUID

from ottla.groups.assignors.spec import GroupSpec
from ottla.groups.partitions import Assignment, TopicIdPartition


def assign_range(spec: GroupSpec) -> dict[str, Assignment]:
    owned: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in spec.members}
    order = sorted(spec.members, key=lambda member_id: _rank(spec, member_id))
    for topic_id, count in spec.partition_counts.items():
        subscribers = [each for each in order if topic_id in spec.members[each].topic_ids]
        if subscribers:
            _divide(topic_id, count, subscribers, owned)
    return {member_id: frozenset(partitions) for member_id, partitions in owned.items()}


def _rank(spec: GroupSpec, member_id: str) -> tuple[str, str]:
    return spec.members[member_id].instance_id or member_id, member_id


def _divide(
    topic_id: UUID, count: int, subscribers: list[str], owned: dict[str, set[TopicIdPartition]]
) -> None:
    """The first subscribers get one more if the partitions do not divide evenly."""
    share, extra = divmod(count, len(subscribers))
    start = 0
    for rank, member_id in enumerate(subscribers):
        end = start + share + (rank < extra)
        owned[member_id].update(TopicIdPartition(topic_id, index) for index in range(start, end))
        start = end
