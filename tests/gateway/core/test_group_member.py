"""A member and a coordinator in memory."""

import asyncio
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kio.static.primitive import i32

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.errors import Unreachable
from ottla.gateway.core.group_member import GroupMember
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds

TOPIC_ID = UUID(int=7)


def answer(
    *partitions: int, epoch: int = 1, changed: bool = True, error: ErrorCode = ErrorCode.none
) -> ConsumerGroupHeartbeatResponse:
    topics = (TopicPartitions(topic_id=TOPIC_ID, partitions=tuple(map(i32, partitions))),)
    return ConsumerGroupHeartbeatResponse(
        throttle_time=milliseconds(0),
        error_code=error,
        member_epoch=i32(epoch),
        heartbeat_interval=milliseconds(1),
        assignment=Assignment(topic_partitions=topics) if changed else None,
    )


class Coordinator:
    """Its own cluster. Sends the given responses, then ones without changes."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[Any] = []
        self.forgotten_count = 0
        self.is_done = asyncio.Event()

    async def call(self, request: Any) -> Any:
        await asyncio.sleep(0)
        self.requests.append(request)
        if not self.answers:
            self.is_done.set()
            return answer(changed=False)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def coordinator(self, _kind: int, _group: str) -> "Coordinator":
        return self

    def forget_metadata(self) -> None:
        self.forgotten_count += 1


def run(make: Callable[[], Coordinator]) -> tuple[Coordinator, list[frozenset[int]]]:
    async def body() -> tuple[Coordinator, list[frozenset[int]]]:
        coordinator = make()
        changes: list[frozenset[int]] = []

        async def on_change(owned: frozenset[int]) -> None:
            changes.append(owned)

        member = GroupMember(cast("Cluster", coordinator), "g", "t", on_change)
        task = asyncio.ensure_future(member.run())
        await asyncio.wait_for(coordinator.is_done.wait(), 120)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return coordinator, changes

    return asyncio.run(body())


def owned(request: Any) -> list[int] | None:
    if request.topic_partitions is None:
        return None
    return [p for topic in request.topic_partitions for p in topic.partitions]


def test_a_member_joins_takes_gives_up_and_leaves() -> None:
    coordinator, changes = run(lambda: Coordinator(answer(0, 1), answer(1, epoch=2)))
    first, second, third = coordinator.requests[:3]
    assert (first.member_epoch, first.subscribed_topic_names, owned(first)) == (0, ("t",), [])
    assert (second.member_epoch, owned(second)) == (1, [0, 1])
    assert (third.member_epoch, owned(third)) == (2, [1])
    assert coordinator.requests[-1].member_epoch == -1
    assert changes == [{0, 1}, {1}, frozenset()]


def test_a_member_that_was_removed_gives_up_everything_and_joins_again() -> None:
    fenced = answer(error=ErrorCode.fenced_member_epoch)
    coordinator, changes = run(lambda: Coordinator(answer(0, 1), fenced, answer(1, epoch=9)))
    assert [request.member_epoch for request in coordinator.requests[:4]] == [0, 1, 0, 9]
    assert changes == [{0, 1}, frozenset(), {1}, frozenset()]


def test_a_coordinator_that_moves_is_looked_for() -> None:
    moved = answer(error=ErrorCode.not_coordinator)
    coordinator, changes = run(lambda: Coordinator(answer(0), Unreachable("gone"), moved))
    assert coordinator.forgotten_count == 2
    assert [owned(request) for request in coordinator.requests[1:4]] == [[0], [0], [0]]
    assert changes == [{0}, frozenset()]
