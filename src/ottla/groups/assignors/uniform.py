"""The uniform assignor: as even as the subscriptions allow, with the fewest possible moves.

If all members subscribe to the same topics, member loads differ by at most one, and no partition
moves unnecessarily. If subscriptions differ, no other subscriber of a partition has at least two
fewer than its owner.
"""

from uuid import UUID

from ottla.groups.assignors.least_loaded import LeastLoaded
from ottla.groups.assignors.spec import GroupSpec
from ottla.groups.partitions import Assignment, TopicIdPartition, all_partitions

_Owned = dict[str, set[TopicIdPartition]]


def assign_uniform(spec: GroupSpec) -> dict[str, Assignment]:
    if not spec.members:
        return {}
    subscriptions = {member.topic_ids for member in spec.members.values()}
    owned = _levelled(spec, *subscriptions) if len(subscriptions) == 1 else _balanced(spec)
    return {member_id: frozenset(partitions) for member_id, partitions in owned.items()}


def _take_previous(spec: GroupSpec, free: set[TopicIdPartition]) -> _Owned:
    """The free partitions that the members had before and still want."""
    owned: _Owned = {}
    for member_id, member in sorted(spec.members.items()):
        kept = free.intersection(member.previous)
        if len(member.topic_ids) < len(spec.partition_counts):
            kept = {each for each in kept if each.topic_id in member.topic_ids}
        owned[member_id] = kept
        free -= kept
    return owned


# Equal subscriptions.


def _levelled(spec: GroupSpec, topic_ids: frozenset[UUID]) -> _Owned:
    """The members that had most may keep the larger shares, to minimize moves."""
    counts = {topic_id: spec.partition_counts[topic_id] for topic_id in topic_ids}
    free = set(all_partitions(counts))
    share, extra = divmod(len(free), len(spec.members))
    owned = _take_previous(spec, free)
    order = sorted(owned, key=lambda member_id: (-len(owned[member_id]), member_id))
    quotas = {member_id: share + (rank < extra) for rank, member_id in enumerate(order)}
    for member_id, quota in quotas.items():
        kept = owned[member_id]
        if len(kept) > quota:
            surplus = sorted(kept)[quota:]
            kept.difference_update(surplus)
            free.update(surplus)
    waiting = sorted(free, reverse=True)
    for member_id, kept in owned.items():
        for _ in range(quotas[member_id] - len(kept)):
            kept.add(waiting.pop())
    return owned


# Different subscriptions.


def _balanced(spec: GroupSpec) -> _Owned:
    free = set(all_partitions(spec.partition_counts))
    owned = _take_previous(spec, free)
    least = LeastLoaded(spec.members, owned)
    # Partitions with few subscribers go first, while those are not yet loaded with others.
    scarcity = {topic_id: least.subscriber_count(topic_id) for topic_id in spec.partition_counts}
    for partition in sorted(free, key=lambda each: (scarcity[each.topic_id], each)):
        if scarcity[partition.topic_id]:
            owned[least.subscriber(partition.topic_id)].add(partition)
    while _improve(least, owned):
        pass
    return owned


def _improve(least: LeastLoaded, owned: _Owned) -> bool:
    """Move partitions to members that have at least two fewer. False if there is no such move.

    Each move lowers the sum of the squares of the loads, so this terminates.
    """
    moved = False
    least_load = min(map(len, owned.values()))
    for member_id in sorted(owned, key=lambda each: (-len(owned[each]), each)):
        mine = owned[member_id]
        if len(mine) - least_load < 2:
            break
        for partition in sorted(mine):
            other_id = least.subscriber(partition.topic_id)
            if len(mine) - len(owned[other_id]) >= 2:
                mine.discard(partition)
                owned[other_id].add(partition)
                least.on_fewer(member_id)
                moved = True
    return moved
