"""Finds the subscriber of a topic with the fewest partitions.

Topics with the same subscribers share a heap of these, with their loads. An entry may show fewer
partitions than the member has by now, which is noticed when the entry reaches the top: only losses
of members must be reported.
"""

from collections.abc import Collection, Mapping
from heapq import heapify, heappush, heapreplace
from uuid import UUID

from ottla.groups.assignors.spec import MemberSpec
from ottla.groups.partitions import TopicIdPartition

_Heap = list[tuple[int, str]]


class LeastLoaded:
    """`owned` is the current assignment, including later changes."""

    def __init__(
        self,
        members: Mapping[str, MemberSpec],
        owned: Mapping[str, Collection[TopicIdPartition]],
    ) -> None:
        self._owned = owned
        self._members = members
        subscribers: dict[frozenset[UUID], list[str]] = {}
        for member_id, member in members.items():
            subscribers.setdefault(member.topic_ids, []).append(member_id)
        subscriptions_of: dict[UUID, list[frozenset[UUID]]] = {}
        for subscription in subscribers:
            for topic_id in subscription:
                subscriptions_of.setdefault(topic_id, []).append(subscription)
        self._heaps: dict[UUID, _Heap] = {}
        self._heaps_of: dict[frozenset[UUID], list[_Heap]] = {each: [] for each in subscribers}
        shared: dict[tuple[int, ...], _Heap] = {}
        for topic_id, subscriptions in subscriptions_of.items():
            key = tuple(map(id, subscriptions))
            heap = shared.get(key)
            if heap is None:
                heap = shared[key] = [
                    (len(owned[member_id]), member_id)
                    for subscription in subscriptions
                    for member_id in subscribers[subscription]
                ]
                heapify(heap)
                for subscription in subscriptions:
                    self._heaps_of[subscription].append(heap)
            self._heaps[topic_id] = heap

    def subscriber_count(self, topic_id: UUID) -> int:
        return len(self._heaps.get(topic_id, ()))

    def subscriber(self, topic_id: UUID) -> str:
        """The subscriber with the fewest partitions; the first by id among equals."""
        heap = self._heaps[topic_id]
        while True:
            load, member_id = heap[0]
            actual = len(self._owned[member_id])
            if load == actual:
                return member_id
            heapreplace(heap, (actual, member_id))

    def on_fewer(self, member_id: str) -> None:
        """Report that the member has lost partitions."""
        load = len(self._owned[member_id])
        for heap in self._heaps_of[self._members[member_id].topic_ids]:
            heappush(heap, (load, member_id))
