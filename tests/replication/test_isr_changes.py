"""Broker 1 leads `a` and `b`; the test answers for the controller."""

import asyncio
from collections.abc import Awaitable, Callable

from kio.schema.alter_partition.v3.request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kio.schema.alter_partition.v3.response import AlterPartitionResponse
from kio.schema.alter_partition.v3.response import PartitionData as AlteredPartition
from kio.schema.alter_partition.v3.response import TopicData as AlteredTopic
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64
from tests.replication.manager_kit import ManagerKit, topic_id
from tests.replication.roles import followers_of, leader_of, proposed_isr
from tests.storage.batches import NOW_MS, produced

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.replication.followers import PROPOSE_AGAIN_MS, FollowerFetch
from ottla.replication.isr_changes import IsrChanges
from ottla.runtime.supervisor import Supervisor

Asked = tuple[AlterPartitionRequest, asyncio.Future[AlterPartitionResponse]]


class Kit(ManagerKit):
    def __init__(self) -> None:
        super().__init__()
        self.requests: asyncio.Queue[Asked] = asyncio.Queue()
        self.failures: list[BaseException] = []
        self.supervisor = Supervisor(asyncio.get_running_loop(), self.failures.append)
        self.changes = IsrChanges(1, lambda: 71, self._alter, self.clock, self.supervisor)
        self.register(2, 3)
        for name in ("a", "b"):
            self.create(name, isr=(1,))

    async def _alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        answer: asyncio.Future[AlterPartitionResponse] = asyncio.Future()
        self.requests.put_nowait((request, answer))
        return await answer

    def fetch(self, name: str, replica: int = 2, offset: int = 0) -> None:
        partition = self.replicas.find(name, 0)
        fetch = FollowerFetch(replica, 70 + replica, offset, 0)
        if leader_of(partition).on_follower_fetch(fetch, self.clock.monotonic_ms()):
            self.changes.submit(partition)

    def pending(self, name: str) -> tuple[int, ...] | None:
        return proposed_isr(self.replicas.find(name, 0))


def altered(
    *results: tuple[str, ErrorCode, int], code: ErrorCode = ErrorCode.none
) -> AlterPartitionResponse:
    """Of (topic, code, partition epoch)."""
    return AlterPartitionResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        topics=tuple(
            AlteredTopic(
                topic_id=topic_id(name),
                partitions=(
                    AlteredPartition(
                        partition_index=i32(0),
                        error_code=code,
                        leader_id=BrokerId(1),
                        leader_epoch=i32(0),
                        isr=(),
                        partition_epoch=i32(partition_epoch),
                    ),
                ),
            )
            for name, code, partition_epoch in results
        ),
    )


def run(test: Callable[[Kit], Awaitable[None]]) -> None:
    async def whole() -> None:
        kit = Kit()
        await test(kit)
        await kit.supervisor.stop()
        assert kit.failures == []

    asyncio.run(whole())


def test_the_request_has_the_set_and_the_epochs_of_all_in_it() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        request, _ = await kit.requests.get()
        assert request == AlterPartitionRequest(
            broker_id=BrokerId(1),
            broker_epoch=i64(71),
            topics=(
                TopicData(
                    topic_id=topic_id("a"),
                    partitions=(
                        PartitionData(
                            partition_index=i32(0),
                            leader_epoch=i32(0),
                            new_isr_with_epochs=(
                                BrokerState(broker_id=BrokerId(1), broker_epoch=i64(71)),
                                BrokerState(broker_id=BrokerId(2), broker_epoch=i64(72)),
                            ),
                            partition_epoch=i32(0),
                        ),
                    ),
                ),
            ),
        )

    run(test)


def test_what_comes_while_a_request_is_under_way_goes_in_the_next() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        _, answer = await kit.requests.get()
        kit.fetch("b")
        await asyncio.sleep(0)
        assert kit.requests.empty()
        kit.change("a", isr=(1, 2))
        answer.set_result(altered(("a", ErrorCode.none, 1)))
        request, _ = await kit.requests.get()
        assert [topic.topic_id for topic in request.topics] == [topic_id("b")]

    run(test)


def test_a_change_that_is_made_ends_with_the_metadata() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        _, answer = await kit.requests.get()
        answer.set_result(altered(("a", ErrorCode.none, 1)))
        await asyncio.sleep(0)
        assert kit.pending("a") == (1, 2)
        kit.change("a", isr=(1, 2))
        assert kit.pending("a") is None
        assert leader_of(kit.replicas.find("a", 0)).in_sync_replicas == (1, 2)

    run(test)


def test_a_change_that_is_refused_is_taken_back() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        partition = kit.replicas.find("a", 0)
        _, answer = await kit.requests.get()
        kit.register(2, fenced=True)
        leader_of(partition).append(*produced(b"one"), NOW_MS)
        assert partition.log.high_watermark == 0
        answer.set_result(altered(("a", ErrorCode.ineligible_replica, -1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert kit.pending("a") is None
        assert partition.log.high_watermark == 1
        kit.register(2)
        kit.clock.advance(int(PROPOSE_AGAIN_MS))
        kit.fetch("a", offset=1)
        assert kit.pending("a") == (1, 2)

    run(test)


def test_a_refused_change_is_proposed_again_though_the_follower_says_nothing_new() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        for _ in range(2):
            request, answer = await kit.requests.get()
            answer.set_result(altered(("a", ErrorCode.ineligible_replica, -1)))
            await asyncio.sleep(0)
            kit.clock.advance(int(PROPOSE_AGAIN_MS))
        assert (await kit.requests.get())[0] == request

    run(test)


def test_a_follower_that_does_not_fetch_for_now_is_neither_waited_for_nor_proposed() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        _, answer = await kit.requests.get()
        partition = kit.replicas.find("a", 0)
        followers_of(partition).on_absent(2)
        answer.set_result(altered(("a", ErrorCode.ineligible_replica, -1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        kit.clock.advance(int(PROPOSE_AGAIN_MS))
        leader_of(partition).append(*produced(b"one"), NOW_MS)
        assert partition.log.high_watermark == 1
        assert not followers_of(partition).maybe_expand(1, kit.clock.monotonic_ms())

    run(test)


def test_a_change_that_was_none_is_over() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        _, answer = await kit.requests.get()
        answer.set_result(altered(("a", ErrorCode.none, 0)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert kit.pending("a") is None

    run(test)


def test_an_answer_that_says_to_wait_for_metadata_changes_nothing() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        _, answer = await kit.requests.get()
        answer.set_result(altered(("a", ErrorCode.invalid_update_version, -1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert kit.pending("a") == (1, 2)
        assert kit.requests.empty()

    run(test)


def test_an_unknown_outcome_is_asked_for_again() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        first, answer = await kit.requests.get()
        answer.set_exception(ApiError(ErrorCode.request_timed_out))
        second, answer = await kit.requests.get()
        assert second == first
        answer.set_result(altered(("a", ErrorCode.not_controller, -1)))
        third, answer = await kit.requests.get()
        assert third == first
        answer.set_result(altered(code=ErrorCode.stale_broker_epoch))
        fourth, _ = await kit.requests.get()
        assert fourth == first

    run(test)


def test_nothing_is_sent_again_when_the_leadership_is_lost() -> None:
    async def test(kit: Kit) -> None:
        kit.fetch("a")
        kit.fetch("b")
        _, answer = await kit.requests.get()
        kit.change("a", leader=2)
        answer.set_exception(ApiError(ErrorCode.request_timed_out))
        request, _ = await kit.requests.get()
        assert [topic.topic_id for topic in request.topics] == [topic_id("b")]

    run(test)
