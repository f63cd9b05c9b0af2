"""Broker 1 leads `a` and `b`, followed by 2 and 3; the fetches of 2 are served."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from tests.replication.manager_kit import ManagerKit, topic_id
from tests.replication.roles import leader_of
from tests.storage.batches import NOW_MS, produced, values_of

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import (
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    ForgottenTopic,
    PartitionData,
)
from ottla.replication.follower_sessions import FollowerAnswer, FollowerSessions
from ottla.runtime.process import Process
from ottla.runtime.supervisor import Supervisor
from ottla.storage.appended import Appended
from ottla.storage.reading import LogSlice

BYTES_MAX = 1 << 20

# An error, a divergence, or the values and the high watermark.
Answer = EpochEndOffset | ErrorCode | tuple[list[str], int]


class Kit(ManagerKit):
    def __init__(self) -> None:
        super().__init__()
        self.executor = ThreadPoolExecutor(1)
        loop = asyncio.get_running_loop()
        process = Process(
            loop=loop,
            clock=self.clock,
            executor=self.executor,
            supervisor=Supervisor(loop, print),
        )
        self.sessions = FollowerSessions(self.replicas, count(1).__next__, process)
        self.register(2, 3)
        self.create("a")
        self.create("b")
        self.take_heard()

    def append(self, name: str, *values: bytes) -> Appended:
        return leader_of(self.replicas.find(name, 0)).append(*produced(*values), NOW_MS)

    def high_watermark(self, name: str) -> int:
        return self.replicas.find(name, 0).log.high_watermark

    def fetch(
        self,
        *asked: tuple[str, FetchedPartition],
        session: tuple[int, int] = (0, 0),
        forgotten: tuple[()] | list[str] = (),
        wait_ms: int = 0,
        bytes_max: int = BYTES_MAX,
    ) -> asyncio.Future[Any]:
        """A future of the fetch response."""
        request = request_of(*asked, session=session, forgotten=forgotten, wait_ms=wait_ms)
        answered = asyncio.get_running_loop().create_future()
        self.sessions.resolve(request).fetch(
            request, bytes_max, by_id=True, respond=answered.set_result
        )
        return answered

    async def fetched(
        self, *asked: tuple[str, FetchedPartition], **options: Any
    ) -> dict[str, Answer]:
        answer = await self.fetch(*asked, **options)
        assert answer.error_code == ErrorCode.none
        return {
            topic.bytes.decode().rstrip("."): describe(data) for topic, data in answer.partitions
        }


def wanted(
    name: str, offset: int, last_epoch: int = 0, leader_epoch: int = 0, size_max: int = BYTES_MAX
) -> tuple[str, FetchedPartition]:
    return name, FetchedPartition(0, leader_epoch, offset, last_epoch, 0, size_max)


def request_of(
    *asked: tuple[str, FetchedPartition],
    session: tuple[int, int] = (0, 0),
    forgotten: tuple[()] | list[str] = (),
    wait_ms: int = 0,
    replica: int = 2,
    broker_epoch: int = 72,
) -> FetchRequest:
    return FetchRequest(
        replica,
        broker_epoch,
        wait_ms,
        1,
        BYTES_MAX,
        0,
        *session,
        [FetchedTopic("", topic_id(name), [partition]) for name, partition in asked],
        [ForgottenTopic("", topic_id(name), [0]) for name in forgotten],
        "",
        None,
    )


def describe(data: PartitionData) -> Answer:
    if data.error_code:
        return ErrorCode(data.error_code)
    if data.diverging_epoch is not None:
        return data.diverging_epoch
    values: list[str] = []
    if data.records is not None:
        assert isinstance(data.records, LogSlice)
        values = [(value or b"").decode() for value in values_of(data.records.read())]
    return values, data.high_watermark


def first_value(answer: Answer) -> str:
    assert not isinstance(answer, EpochEndOffset | ErrorCode)
    return answer[0][0]


def run(test: Callable[[Kit], Awaitable[None]]) -> None:
    async def whole() -> None:
        kit = Kit()
        try:
            await test(kit)
        finally:
            kit.executor.shutdown()

    asyncio.run(whole())


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_follower_gets_what_is_not_committed() -> None:
    async def test(kit: Kit) -> None:
        kit.append("a", b"one", b"two")
        assert await kit.fetched(wanted("a", 0), wanted("b", 0)) == {
            "a": (["one", "two"], 0),
            "b": ([], 0),
        }

    run(test)


def test_its_offset_moves_the_high_watermark() -> None:
    async def test(kit: Kit) -> None:
        kit.change("a", isr=(1, 2))
        kit.append("a", b"one")
        await kit.fetched(wanted("a", 0))
        assert kit.high_watermark("a") == 0
        await kit.fetched(wanted("a", 1))
        assert kit.high_watermark("a") == 1

    run(test)


def test_a_session_is_told_only_what_is_new() -> None:
    async def test(kit: Kit) -> None:
        kit.append("a", b"one")
        first = await kit.fetch(wanted("a", 0), wanted("b", 0))
        assert first.session_id == 1
        assert await kit.fetched(wanted("a", 1), session=(1, 1)) == {}
        kit.append("b", b"two")
        assert await kit.fetched(session=(1, 2)) == {"b": (["two"], 0)}
        # It is sent again until the follower asks for the next offset.
        assert await kit.fetched(session=(1, 3)) == {"b": (["two"], 0)}
        assert await kit.fetched(wanted("b", 1), session=(1, 4)) == {}

    run(test)


def test_an_append_answers_the_fetch_that_waits() -> None:
    async def test(kit: Kit) -> None:
        await kit.fetched(wanted("a", 0), wanted("b", 0))
        answer = kit.fetch(session=(1, 1), wait_ms=60_000)
        await turns()
        assert not answer.done()
        kit.append("b", b"one")
        kit.append("b", b"two")
        ((topic, data),) = (await answer).partitions
        assert topic == topic_id("b")
        assert describe(data) == (["one", "two"], 0)

    run(test)


def test_time_answers_the_fetch_that_waits() -> None:
    async def test(kit: Kit) -> None:
        await kit.fetched(wanted("a", 0))
        assert await kit.fetched(session=(1, 1), wait_ms=1) == {}

    run(test)


def test_what_is_committed_is_told_soon_without_records() -> None:
    async def test(kit: Kit) -> None:
        kit.append("a", b"one")
        await kit.fetched(wanted("a", 0))
        answer = kit.fetch(wanted("a", 1), session=(1, 1), wait_ms=60_000)
        kit.change("a", isr=(1, 2))
        ((_, data),) = (await answer).partitions
        assert describe(data) == ([], 1)

    run(test)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (wanted("a", 2, last_epoch=0, leader_epoch=1), EpochEndOffset(0, 1)),
        (wanted("a", 1, last_epoch=0, leader_epoch=0), ErrorCode.fenced_leader_epoch),
        (wanted("a", 1, last_epoch=0, leader_epoch=2), ErrorCode.unknown_leader_epoch),
        (wanted("a", 5, last_epoch=-1, leader_epoch=1), ErrorCode.offset_out_of_range),
        (wanted("missing", 0), ErrorCode.unknown_topic_id),
    ],
)
def test_a_follower_that_cannot_go_on_hears_why_and_does_not_count(
    asked: tuple[str, FetchedPartition], expected: EpochEndOffset | ErrorCode
) -> None:
    async def test(kit: Kit) -> None:
        kit.append("a", b"one")
        kit.change("a", isr=(1, 2), leader=1)
        kit.append("a", b"two")
        answer = kit.fetch(asked, wait_ms=60_000)
        ((_, data),) = (await answer).partitions
        assert describe(data) == expected
        assert kit.high_watermark("a") == 0

    run(test)


def test_an_offset_before_the_log_hears_where_the_log_starts() -> None:
    async def test(kit: Kit) -> None:
        kit.append("a", b"one")
        log = kit.replicas.find("a", 0).log
        log.high_watermark = 1
        log.delete_records_before(1)
        ((_, data),) = (await kit.fetch(wanted("a", 0, last_epoch=-1))).partitions
        assert (data.error_code, data.log_start_offset) == (ErrorCode.offset_out_of_range, 1)

    run(test)


def test_leadership_that_is_lost_answers_the_fetch_that_waits() -> None:
    async def test(kit: Kit) -> None:
        await kit.fetched(wanted("a", 0))
        answer = kit.fetch(session=(1, 1), wait_ms=60_000)
        kit.change("a", leader=3)
        ((_, data),) = (await answer).partitions
        assert describe(data) is ErrorCode.not_leader_or_follower
        # Each fetch returns it.
        assert await kit.fetched(session=(1, 2)) == {"a": ErrorCode.not_leader_or_follower}
        kit.change("a", leader=1)
        assert await kit.fetched(wanted("a", 0, leader_epoch=2), session=(1, 3)) == {}
        kit.append("a", b"one")
        assert await kit.fetched(session=(1, 4)) == {"a": (["one"], 0)}

    run(test)


def test_a_forgotten_partition_is_not_told() -> None:
    async def test(kit: Kit) -> None:
        await kit.fetched(wanted("a", 0), wanted("b", 0))
        assert await kit.fetched(session=(1, 1), forgotten=["a"]) == {}
        kit.append("a", b"one")
        assert await kit.fetched(session=(1, 2)) == {}

    run(test)


def test_partitions_take_turns_when_the_answer_is_full() -> None:
    async def test(kit: Kit) -> None:
        for name in ("a", "b"):
            kit.append(name, b"1", b"x" * 500)
            kit.append(name, b"2", b"x" * 500)
        first = await kit.fetched(wanted("a", 0), wanted("b", 0), bytes_max=700)
        assert first_value(first["a"]) == "1"
        assert first["b"] == ([], 0)
        second = await kit.fetched(wanted("a", 2), session=(1, 1), bytes_max=700)
        assert set(second) == {"b"}
        third = await kit.fetched(wanted("b", 2), session=(1, 2), bytes_max=700)
        assert first_value(third["a"]) == "2"

    run(test)


def test_a_follower_that_caught_up_joins_the_in_sync_set() -> None:
    async def test(kit: Kit) -> None:
        kit.change("a", isr=(1,))
        kit.append("a", b"one")
        await kit.fetched(wanted("a", 0))
        assert kit.take_heard() == []
        await kit.fetched(wanted("a", 1))
        assert kit.take_heard() == [("isr change", "a-0")]

    run(test)


def test_sessions_that_are_not_known_are_refused() -> None:
    async def test(kit: Kit) -> None:
        await kit.fetched(wanted("a", 0))
        for session, code in (
            ((2, 1), ErrorCode.fetch_session_id_not_found),
            ((1, 2), ErrorCode.invalid_fetch_session_epoch),
        ):
            with pytest.raises(ApiError) as refused:
                kit.sessions.resolve(request_of(session=session))
            assert refused.value.code is code

    run(test)


def test_a_fetch_without_a_session_leaves_none() -> None:
    async def test(kit: Kit) -> None:
        kit.append("a", b"one")
        assert await kit.fetched(wanted("a", 0), session=(0, -1)) == {"a": (["one"], 0)}
        assert len(kit.sessions) == 0

    run(test)


def test_a_session_that_ended_is_not_answered() -> None:
    async def test(kit: Kit) -> None:
        request = request_of(wanted("a", 0))
        session = kit.sessions.resolve(request)
        answers: list[FollowerAnswer] = []
        session.fetch(request, BYTES_MAX, by_id=True, respond=answers.append)
        waiting = request_of(session=(1, 1), wait_ms=60_000)
        kit.sessions.resolve(waiting).fetch(waiting, BYTES_MAX, by_id=True, respond=answers.append)
        kit.sessions.end(session)
        kit.append("a", b"one")
        await turns()
        assert len(answers) == 1
        assert len(kit.sessions) == 0

    run(test)
