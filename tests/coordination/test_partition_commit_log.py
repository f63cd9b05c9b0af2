import asyncio

import pytest
from tests.coordination.coordinator_kit import TOPIC, BrokerKit, PairCodec, Pairs, run
from tests.kits.refusals import refusal_of
from tests.replication.roles import leader_of

from ottla.coordination import latest_by_key, partition_commit_log
from ottla.machine.result import Result
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.machine_batches import encode_batch
from ottla.storage.config import LogConfig

PAIRS = [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("d", "1"), ("b", "2")]


def test_what_is_answered_is_committed() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        reply = kit.put(("a", "1"), ("b", "2"))
        assert not reply.done()
        await reply
        log = kit.partition().log
        assert (log.high_watermark, log.flushed_offset, log.log_end_offset) == (2, 2, 2)

    run(test)


def test_a_read_waits_for_what_it_saw() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        kit.put(("a", "1"))
        read = kit.get("a")
        assert not read.done()
        assert await read == "1"
        assert kit.get("a").result() == "1"

    run(test)


def test_many_appends_share_their_syncs_and_are_answered_in_order() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        answered = []
        replies = []
        for number in range(100):
            reply = kit.put((str(number), "x"))
            reply.add_done_callback(lambda done: answered.append(done.result()))
            replies.append(reply)
            if number % 10 == 0:
                await asyncio.sleep(0)
        await asyncio.gather(*replies)
        assert answered == list(range(100))

    run(test)


def test_the_batch_carries_the_leader_epoch() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        kit.elect(2)
        kit.elect(1)
        await kit.loaded()
        await kit.put(("a", "1"))
        assert kit.partition().log.leader_epochs.latest_epoch == kit.partition().leader_epoch == 2

    run(test)


def test_transactions_are_replayed_live_as_when_loaded() -> None:
    records = [
        (("a", "1"),),
        (Transactional(9, 0, ("a", "2")), Transactional(9, 0, ("b", "2"))),
        (Transactional(8, 0, ("c", "3")),),
        (TransactionMarker(9, 0, 4, True),),
        (TransactionMarker(8, 0, 4, False),),
        (("d", "4"),),
    ]

    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        for batch in records:
            await write(kit, batch)
        live = (await kit.loaded()).replayed
        assert live == [record for batch in records for record in batch]
        log = kit.partition().log
        assert log.last_stable_offset(log.high_watermark) == log.log_end_offset == 7
        kit.elect(2)
        kit.elect(1)
        machine = await kit.loaded()
        assert machine.replayed == live
        assert machine.values == {"a": "2", "b": "2", "d": "4"}

    run(test)


def test_what_the_log_refuses_a_producer_concerns_only_that_request() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        machine = await kit.loaded()
        await kit.submit(lambda machine, now_ms: Result(None, (Transactional(9, 5, ("a", "1")),)))
        fenced = kit.submit(
            lambda machine, now_ms: Result(None, (Transactional(9, 4, ("a", "2")),))
        )
        assert refusal_of(fenced) is ErrorCode.invalid_producer_epoch
        assert await kit.loaded() is machine
        await kit.put(("b", "3"))
        assert kit.get("b").result() == "3"

    run(test)


def test_loading_drops_what_compaction_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_commit_log, "READ_BYTES", 1)  # One batch at a time.
    monkeypatch.setattr(latest_by_key, "KEYS_MAX", 3)

    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        machine = await _loaded_again(kit)
        assert machine.replayed == [("b", "1"), ("a", "2"), ("c", "1"), ("d", "1"), ("b", "2")]

    run(test)


def test_loading_keeps_all_of_a_log_that_is_not_compacted() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        kit.partition().log.config = LogConfig(cleanup_policy=("delete",))
        machine = await _loaded_again(kit)
        assert machine.replayed == PAIRS

    run(test)


async def write(kit: BrokerKit, records: tuple[object, ...]) -> None:
    await kit.submit(lambda machine, now_ms: Result(None, records))


async def _loaded_again(kit: BrokerKit) -> Pairs:
    await kit.loaded()
    for pair in PAIRS:
        await kit.put(pair)
    kit.elect(2)
    kit.elect(1)
    return await kit.loaded()


def test_a_full_disk_fails_what_waits_and_the_machine_is_loaded_again() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        machine = await kit.loaded()
        await kit.put(("a", "1"))
        kit.disk.disk_full(0)
        waiting = kit.put(("a", "2"))
        assert refusal_of(waiting) is ErrorCode.not_coordinator
        with pytest.raises(ApiError) as refusal:
            kit.get("a").result()
        assert refusal.value.code is ErrorCode.coordinator_load_in_progress
        kit.disk.disk_full(None)
        again = await kit.loaded()
        assert again is not machine
        assert again.values == {"a": "1"}
        await kit.put(("a", "3"))

    run(test)


def test_too_few_replicas_refuse_a_write() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        partition = kit.partition()
        leader_of(partition).in_sync_replicas = ()
        reply = kit.put(("a", "1"))
        assert refusal_of(reply) is ErrorCode.coordinator_not_available

    run(test)


def test_a_failed_sync_ends_the_coordinator() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        kit.disk.fail_next_sync()
        reply = kit.put(("a", "1"))
        with pytest.raises(ApiError) as refusal:
            await reply
        assert refusal.value.code is ErrorCode.not_coordinator
        for _ in range(3):
            await asyncio.sleep(0)
        with pytest.raises(ApiError) as refusal:
            kit.get("a")
        assert refusal.value.code is ErrorCode.coordinator_not_available

    run(test)


def test_what_a_leader_has_in_its_log_is_loaded_before_it_is_committed() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic(leader=2)
        log = kit.replicas._topics[TOPIC][0].log
        batch = encode_batch((("a", "1"),), PairCodec(), 5)
        log.append_as_follower(memoryview(batch))
        assert log.high_watermark == 0
        kit.elect(1)
        machine = await kit.loaded()
        assert machine.values == {"a": "1"}
        assert await kit.get("a") == "1"
        assert log.high_watermark == 1

    run(test)


def test_everything_survives_a_crash() -> None:
    async def test(kit: BrokerKit) -> None:
        kit.create_topic()
        await kit.loaded()
        await asyncio.gather(*(kit.put((str(number), "x")) for number in range(50)))
        kit.put(("late", "y"))
        kit.disk.crash()
        restarted = BrokerKit(kit.disk)
        restarted.create_topic()
        machine = await restarted.loaded()
        assert {str(number) for number in range(50)} <= set(machine.values)
        await restarted.close()

    run(test)
