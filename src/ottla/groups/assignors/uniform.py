"""The uniform assignor: as even as the subscriptions allow, moving as little as possible.

When all members subscribe to the same topics, member loads differ by at most one, and no partition
moves that need not. When subscriptions differ, each partition is at a member than which no other
subscriber of it has at least two fewer.
"""

from uuid import UUID

from ottla.groups.assignors.spec import GroupSpec
from ottla.groups.partitions import Assignment, TopicIdPartition, all_partitions

_Owned = dict[str, set[TopicIdPartition]]


def assign_uniform(spec: GroupSpec) -> dict[str, Assignment]:
    if not spec.members:
        return {}
    owned = _kept(spec)
    subscriptions = {member.topic_ids for member in spec.members.values()}
    if len(subscriptions) == 1:
        _level(spec, owned)
    else:
        _balance(spec, owned)
    return {member_id: frozenset(partitions) for member_id, partitions in owned.items()}


def _kept(spec: GroupSpec) -> _Owned:
    """What the members had before, as far as it still exists and they still want it."""
    taken: set[TopicIdPartition] = set()
    owned: _Owned = {}
    for member_id, member in sorted(spec.members.items()):
        kept = {
            partition
            for partition in member.previous
            if partition.topic_id in member.topic_ids
            and partition.partition < spec.partition_counts.get(partition.topic_id, 0)
            and partition not in taken
        }
        owned[member_id] = kept
        taken |= kept
    return owned


def _unassigned(spec: GroupSpec, owned: _Owned) -> list[TopicIdPartition]:
    taken = set().union(*owned.values())
    return [each for each in sorted(all_partitions(spec.partition_counts)) if each not in taken]


# Equal subscriptions.


def _level(spec: GroupSpec, owned: _Owned) -> None:
    """Those that had most may keep the larger shares, so that the least has to move."""
    (topic_ids,) = {member.topic_ids for member in spec.members.values()}
    total = sum(spec.partition_counts[topic_id] for topic_id in topic_ids)
    share, extra = divmod(total, len(owned))
    order = sorted(owned, key=lambda member_id: (-len(owned[member_id]), member_id))
    quotas = {member_id: share + (rank < extra) for rank, member_id in enumerate(order)}
    for member_id, quota in quotas.items():
        owned[member_id].difference_update(sorted(owned[member_id])[quota:])
    free = [each for each in _unassigned(spec, owned) if each.topic_id in topic_ids]
    free.reverse()
    for member_id in sorted(owned):
        while len(owned[member_id]) < quotas[member_id]:
            owned[member_id].add(free.pop())


# Different subscriptions.


def _balance(spec: GroupSpec, owned: _Owned) -> None:
    subscribers = _subscribers(spec)
    waiting = [each for each in _unassigned(spec, owned) if subscribers[each.topic_id]]
    # Partitions that few can take go first, while those few are not yet loaded with others.
    for partition in sorted(waiting, key=lambda each: (len(subscribers[each.topic_id]), each)):
        owned[_least(subscribers[partition.topic_id], owned)].add(partition)
    while _improve(subscribers, owned):
        pass


def _subscribers(spec: GroupSpec) -> dict[UUID, list[str]]:
    found: dict[UUID, list[str]] = {topic_id: [] for topic_id in spec.partition_counts}
    for member_id, member in sorted(spec.members.items()):
        for topic_id in member.topic_ids:
            found[topic_id].append(member_id)
    return found


def _least(candidates: list[str], owned: _Owned) -> str:
    return min(candidates, key=lambda member_id: (len(owned[member_id]), member_id))


def _improve(subscribers: dict[UUID, list[str]], owned: _Owned) -> bool:
    """Move partitions to members that have at least two fewer. False when there is no such move.

    Each move lowers the sum of the squares of the loads, so this comes to an end.
    """
    moved = False
    least_load = min(map(len, owned.values()))
    for member_id in sorted(owned, key=lambda each: (-len(owned[each]), each)):
        if len(owned[member_id]) - least_load < 2:
            break
        for partition in sorted(owned[member_id]):
            target = _least(subscribers[partition.topic_id], owned)
            if len(owned[member_id]) - len(owned[target]) >= 2:
                owned[member_id].discard(partition)
                owned[target].add(partition)
                moved = True
    return moved
