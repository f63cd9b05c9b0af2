import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

from ottla.coordination.serving_coordinators import PartitionLeadership, ServingCoordinators
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import CONSUMER_OFFSETS_TOPIC, TopicPartition
from ottla.runtime.supervisor import Supervisor

PARTITION = TopicPartition(CONSUMER_OFFSETS_TOPIC, 3)
LEADERSHIP = PartitionLeadership(PARTITION, leader=2, leader_epoch=5)


class Kit:
    """Broker 2 answers with `code`, or not at all."""

    def __init__(self) -> None:
        self.code: ErrorCode | None = ErrorCode.none
        self.asked: list[tuple[int, Any]] = []
        self.serving = ServingCoordinators(self._ask, Supervisor(asyncio.get_running_loop(), print))

    async def _ask(self, broker_id: int, request: Any) -> Any:
        self.asked.append((broker_id, request))
        await asyncio.sleep(0)
        if self.code is None:
            raise ApiError(ErrorCode.coordinator_not_available, "no answer")
        (topic,) = request.topics
        (asked,) = topic.partitions
        found = ListOffsetsPartitionResponse(
            partition_index=asked.partition_index, error_code=self.code
        )
        topics = (ListOffsetsTopicResponse(name=topic.name, partitions=(found,)),)
        return ListOffsetsResponse(throttle_time=NO_THROTTLE, topics=topics)


def run(scenario: Callable[[Kit], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(Kit())

    asyncio.run(main())


def test_a_leader_is_asked_once() -> None:
    async def scenario(kit: Kit) -> None:
        assert not kit.serving.is_known(LEADERSHIP)
        await asyncio.gather(*(kit.serving.learn([LEADERSHIP, LEADERSHIP]) for _ in range(5)))
        await kit.serving.learn([LEADERSHIP])
        assert kit.serving.is_known(LEADERSHIP)
        ((broker_id, request),) = kit.asked
        (asked,) = request.topics[0].partitions
        assert (broker_id, request.topics[0].name) == (2, CONSUMER_OFFSETS_TOPIC)
        assert (asked.partition_index, asked.current_leader_epoch) == (3, 5)

    run(scenario)


def test_a_leader_that_does_not_know_it_yet_is_asked_again() -> None:
    async def scenario(kit: Kit) -> None:
        for kit.code in (
            ErrorCode.unknown_topic_or_partition,
            ErrorCode.not_leader_or_follower,
            ErrorCode.unknown_leader_epoch,
            None,
        ):
            await kit.serving.learn([LEADERSHIP])
            assert not kit.serving.is_known(LEADERSHIP)
        kit.code = ErrorCode.none
        await kit.serving.learn([LEADERSHIP])
        assert kit.serving.is_known(LEADERSHIP)

    run(scenario)


def test_every_leadership_is_asked_for() -> None:
    async def scenario(kit: Kit) -> None:
        await kit.serving.learn([LEADERSHIP])
        later = LEADERSHIP._replace(leader=3, leader_epoch=6)
        assert not kit.serving.is_known(later)
        await kit.serving.learn([later])
        assert kit.serving.is_known(later)
        assert not kit.serving.is_known(LEADERSHIP)
        assert [broker_id for broker_id, _ in kit.asked] == [2, 3]

    run(scenario)
