"""Acknowledging deliveries, with leaders that answer as a test says."""

import asyncio
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

from ottla.client.async_wire.cluster import Cluster
from ottla.client.share_wire.settling import Claim, Settler, Verdict
from ottla.client.share_wire.share_session import SessionKey
from ottla.client.wire.cluster import Topic
from ottla.client.wire.errors import Unreachable
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delivery_acknowledge import (
    DeliveryAcknowledgeRequest,
    DeliveryAcknowledgeResponse,
    DeliveryAcknowledgeType,
    DeliveryResult,
    GroupResult,
    PartitionResult,
    TopicResult,
)
from ottla.protocol.times import NO_THROTTLE

TOPIC_ID = UUID(int=1)
ACCEPT = Verdict(DeliveryAcknowledgeType.ACCEPT)

Range = tuple[int, int, int]  # Partition, first offset, last offset.
Answer = Callable[[Range], ErrorCode]


class FakeCluster:
    """Nodes 1 and 2; `leaders` is what the metadata says."""

    def __init__(self, answer: Answer) -> None:
        self.leaders = {0: 1, 1: 2}
        self.requests: list[tuple[int, list[Range]]] = []
        self.forgotten = 0
        self.is_away = False
        self.leaves_out = False
        self._answer = answer

    async def topic(self, _: str) -> Topic:
        return Topic(TOPIC_ID, dict(self.leaders), is_internal=False, replicas={})

    async def node(self, node_id: int) -> "FakeConnection":
        return FakeConnection(self, node_id)

    def forget_metadata(self) -> None:
        self.forgotten += 1

    def answer(self, node_id: int, request: DeliveryAcknowledgeRequest) -> Any:
        acknowledged: list[Range] = []
        self.requests.append((node_id, acknowledged))
        groups = []
        for group in request.groups:
            topics = []
            for topic in group.topics:
                partitions = []
                for partition in topic.partitions:
                    results = []
                    for each in partition.deliveries:
                        offsets = partition.partition_index, each.first_offset, each.last_offset
                        acknowledged.append(offsets)
                        results.append(DeliveryResult(error_code=self._answer(offsets)))
                    partitions.append(
                        PartitionResult(
                            partition_index=partition.partition_index,
                            error_code=ErrorCode.none,
                            deliveries=tuple(results),
                        )
                    )
                topics.append(TopicResult(topic_id=topic.topic_id, partitions=tuple(partitions)))
            groups.append(GroupResult(group_id=group.group_id, topics=tuple(topics)))
        if self.leaves_out:
            groups = []
        return DeliveryAcknowledgeResponse(throttle_time=NO_THROTTLE, groups=tuple(groups))


class FakeConnection:
    def __init__(self, cluster: FakeCluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id

    async def call(self, request: DeliveryAcknowledgeRequest) -> Any:
        if self._cluster.is_away:
            raise Unreachable("the node is away")
        return self._cluster.answer(self._node_id, request)


def claim(partition: int, offset: int, *, holder: str = "m", topic_id: UUID = TOPIC_ID) -> Claim:
    return Claim(SessionKey("t", topic_id, "g", holder), partition, 1, ACCEPT, offset)


def accept(_: Range) -> ErrorCode:
    return ErrorCode.none


def settle(cluster: FakeCluster, *claims: Claim, timeout_s: float = 60.0) -> list[ErrorCode]:
    async def run() -> list[ErrorCode]:
        loop = asyncio.get_running_loop()
        settler = Settler(cast("Cluster", cluster), loop, timeout_s=timeout_s)
        try:
            return await settler.settle(claims)
        finally:
            await settler.close()

    return asyncio.run(run())


def test_neighbours_are_one_range_and_each_leader_gets_its_own() -> None:
    cluster = FakeCluster(accept)
    claims = [claim(0, 2), claim(1, 7), claim(0, 1), claim(0, 3), claim(0, 9), claim(0, 4)]
    assert settle(cluster, *claims) == [ErrorCode.none] * 6
    assert sorted(cluster.requests) == [(1, [(0, 1, 4), (0, 9, 9)]), (2, [(1, 7, 7)])]


def test_records_of_different_holders_are_not_one_range() -> None:
    cluster = FakeCluster(accept)
    settle(cluster, claim(0, 1), claim(0, 2, holder="other"))
    assert sorted(cluster.requests[0][1]) == [(0, 1, 1), (0, 2, 2)]


def test_a_refused_range_is_sent_again_one_by_one() -> None:
    def answer(acknowledged: Range) -> ErrorCode:
        _, first, last = acknowledged
        return ErrorCode.invalid_record_state if first <= 2 <= last else ErrorCode.none

    codes = settle(FakeCluster(answer), *(claim(0, offset) for offset in range(4)))
    none, refused = ErrorCode.none, ErrorCode.invalid_record_state
    assert codes == [none, none, refused, none]


def test_a_leader_that_moved_is_looked_for() -> None:
    cluster = FakeCluster(accept)
    cluster.leaders[0] = -1

    def forget() -> None:
        cluster.leaders[0] = 2

    cluster.forget_metadata = forget  # type: ignore[method-assign]
    assert settle(cluster, claim(0, 1)) == [ErrorCode.none]
    assert cluster.requests == [(2, [(0, 1, 1)])]


def test_what_nobody_confirms_in_time_may_be_repeated() -> None:
    cluster = FakeCluster(accept)
    cluster.is_away = True
    (code,) = settle(cluster, claim(0, 1), timeout_s=0.2)
    assert code.retriable
    assert cluster.forgotten


def test_what_may_have_been_put_back_is_not_put_back_again() -> None:
    """By then another consumer may have the record, with the same holder and count."""
    cluster = FakeCluster(accept)
    cluster.leaves_out = True
    put_back = claim(0, 1)._replace(verdict=Verdict(DeliveryAcknowledgeType.PUT_BACK))
    (code,) = settle(cluster, put_back)
    assert code is not ErrorCode.none
    assert cluster.requests == [(1, [(0, 1, 1)])]


def test_an_answer_that_leaves_some_out_leaves_nobody_waiting() -> None:
    cluster = FakeCluster(accept)
    cluster.leaves_out = True
    (code,) = settle(cluster, claim(0, 1), timeout_s=0.2)
    assert code.retriable


def test_a_topic_that_was_made_again_has_none_of_the_deliveries() -> None:
    cluster = FakeCluster(accept)
    codes = settle(cluster, claim(0, 1, topic_id=UUID(int=2)))
    assert codes == [ErrorCode.unknown_topic_id]
    assert cluster.requests == []
