"""Broker 2 leads `there`, nobody `lost`."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.list_offsets.v11.request import ListOffsetsRequest
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.static.primitive import i64
from tests.replication.manager_kit import ManagerKit

from ottla.controller.records import NO_LEADER
from ottla.coordination.remote_log_ends import RemoteLogEnds
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition

LATEST = -1


def answer(request: ListOffsetsRequest, code: ErrorCode, offset: int = -1) -> ListOffsetsResponse:
    (topic,) = request.topics
    (asked,) = topic.partitions
    assert asked.timestamp == LATEST
    found = ListOffsetsPartitionResponse(
        partition_index=asked.partition_index, error_code=code, offset=i64(offset)
    )
    topics = (ListOffsetsTopicResponse(name=topic.name, partitions=(found,)),)
    return ListOffsetsResponse(throttle_time=NO_THROTTLE, topics=topics)


def find(topic: str, reply: Callable[[ListOffsetsRequest], ListOffsetsResponse]) -> int:
    async def main() -> int:
        kit: Any = ManagerKit()
        kit.create("there", leader=2)
        kit.create("lost", leader=NO_LEADER)

        async def ask(broker_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
            assert broker_id == 2
            return reply(request)

        return await RemoteLogEnds(kit.image, ask).find(TopicPartition(topic, 0))

    return asyncio.run(main())


def test_the_leader_tells_the_end() -> None:
    assert find("there", lambda request: answer(request, ErrorCode.none, 7)) == 7


def test_a_broker_that_leads_no_longer() -> None:
    code = ErrorCode.not_leader_or_follower
    with pytest.raises(ApiError) as refused:
        find("there", lambda request: answer(request, code))
    assert refused.value.code is code


def test_an_answer_about_nothing() -> None:
    with pytest.raises(ApiError):
        find("there", lambda _: ListOffsetsResponse(throttle_time=NO_THROTTLE, topics=()))


@pytest.mark.parametrize("topic", ["lost", "no-such-topic"])
def test_there_may_be_nobody_to_ask(topic: str) -> None:
    with pytest.raises(ApiError) as refused:
        find(topic, lambda request: answer(request, ErrorCode.none))
    assert refused.value.code is ErrorCode.leader_not_available
