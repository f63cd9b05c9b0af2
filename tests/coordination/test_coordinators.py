import asyncio
from collections.abc import Callable

import pytest
from tests.coordination.coordinator_kit import BrokerKit, run
from tests.kits.refusals import refusal_of
from tests.replication.roles import leader_of

from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import read_header
from ottla.records.builder import Record, build_batch


def code_of(call: Callable[..., object], *arguments: str) -> ErrorCode:
    with pytest.raises(ApiError) as refusal:
        call(*arguments)
    return refusal.value.code


def test_without_the_topic_nobody_coordinates() -> None:
    async def test(kit: BrokerKit) -> None:
        assert kit.coordinators.partition_of("0") is None
        assert code_of(kit.coordinators.find, "0") is ErrorCode.not_coordinator
        assert list(kit.coordinators.all()) == []

    run(test)


def test_only_led_partitions_have_a_coordinator() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic(partitions=3)
        kit.elect(2, index=1)
        assert [kit.coordinators.partition_of(key) for key in ("0", "1", "5")] == [0, 1, 2]
        assert await kit.loaded("0") is not await kit.loaded("5")
        assert code_of(kit.coordinators.find, "1") is ErrorCode.not_coordinator
        assert len(list(kit.coordinators.all())) == 2

    run(test)


def test_a_coordinator_that_loads_says_so() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        assert refusal_of(kit.get("a")) is ErrorCode.coordinator_load_in_progress
        await kit.loaded()
        assert kit.get("a").result() is None

    run(test)


def test_leadership_moves_away_and_back() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        before = await kit.loaded()
        await kit.put(("a", "1"))
        waiting = kit.put(("a", "2"))
        kit.elect(2)
        assert refusal_of(waiting) is ErrorCode.not_coordinator
        assert code_of(kit.coordinators.find, "0") is ErrorCode.not_coordinator
        kit.elect(1)
        after = await kit.loaded()
        assert after is not before
        # The append was never answered, but it is in the log.
        assert after.values == {"a": "2"}
        await kit.put(("a", "3"))
        assert kit.get("a").result() == "3"

    run(test)


def test_leadership_that_is_lost_while_loading_ends_the_load() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        await asyncio.gather(*(kit.put((str(number), "x")) for number in range(20)))
        for _ in range(5):
            kit.elect(2)
            kit.elect(1)
            await asyncio.sleep(0)
        machine = await kit.loaded()
        assert len(machine.values) == 20

    run(test)


def test_a_change_of_replicas_alone_changes_nothing() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        machine = await kit.loaded()
        kit.elect(1)
        assert await kit.loaded() is machine

    run(test)


def test_a_deleted_topic_has_no_coordinators() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        waiting = kit.put(("a", "1"))
        kit.delete_topic()
        assert refusal_of(waiting) is ErrorCode.not_coordinator
        assert list(kit.coordinators.all()) == []

    run(test)


def test_timers_end_with_the_leadership() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        machine = await kit.loaded()
        fired: list[int] = []

        def expire(now_ms: int) -> Result[None]:
            fired.append(now_ms)
            return Result(None)

        machine.timers.schedule("soon", 0, expire)
        kit.elect(2)
        for _ in range(3):
            await asyncio.sleep(0)
        assert fired == []

    run(test)


def test_a_log_that_cannot_be_read_makes_one_coordinator_unavailable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic(partitions=2, leader=2)
        kit.elect(1, index=0)
        batch = build_batch([Record(timestamp=5, key=b"a", value=b"bad")])
        leader_of(kit.partition(0)).append(memoryview(batch), read_header(batch), 5)
        kit.elect(2, index=0)
        kit.elect(1, index=0)
        kit.elect(1, index=1)
        await kit.loaded("1")

        async def refused() -> ApiError:
            while True:
                try:
                    kit.coordinators.find("0")
                except ApiError as error:
                    return error
                await asyncio.sleep(0)

        refusal = await refused()
        assert refusal.code is ErrorCode.coordinator_not_available
        assert "the record at offset 0: not a pair" in refusal.message
        assert "cannot be loaded" in caplog.text
        assert len(list(kit.coordinators.all())) == 1

    run(test)


def test_stopping_answers_everyone() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        waiting = kit.put(("a", "1"))
        kit.replicas.fail(ApiError(ErrorCode.not_leader_or_follower, "the broker stops"))
        assert refusal_of(waiting) is ErrorCode.not_coordinator

    run(test)
