"""Receiving and settling on a real broker, with and without held locks."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.client.async_wire.cluster import Cluster
from ottla.client.share_wire.share_members import ShareMembers
from ottla.client.share_wire.share_session import FetchedShares, ShareSession
from ottla.client.wire.errors import BrokerError
from ottla.gateway.core.access import Access
from ottla.gateway.core.queues import Delivery, Queues, SettleError
from ottla.gateway.core.shared_secret import SharedSigner, shared_secrets

PATIENCE_MS = 120_000


@pytest.fixture(params=["held by the broker", "of the session"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "of the session":

        async def hold(_: ShareMembers) -> bool:
            return False

        monkeypatch.setattr(ShareMembers, "hold", hold)
    return str(request.param)


@pytest.fixture
def topic(bootstrap: str) -> Iterator[str]:
    name = f"queue-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, 2, 1)]).values():
        made.result()
    yield name
    for deleted in admin.delete_topics([name]).values():
        deleted.result()


def publish(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value=value, key=value, headers=[("n", value)])
    assert producer.flush(PATIENCE_MS / 1000) == 0


@asynccontextmanager
async def gateway(bootstrap: str) -> AsyncIterator[Queues]:
    async with Cluster(bootstrap) as cluster:
        queues = Queues(cluster, SharedSigner(Access(bootstrap)), asyncio.get_running_loop())
        try:
            yield queues
        finally:
            await queues.close()


def position(delivery: Delivery) -> tuple[int, int]:
    return delivery.opened.partition, delivery.opened.offset


async def drain(queues: Queues, topic: str, group: str, count: int) -> list[Delivery]:
    """Receives until there are that many; acknowledges nothing."""
    found: list[Delivery] = []
    while len(found) < count:
        got = await queues.receive(topic, group, count=count - len(found), wait_ms=PATIENCE_MS)
        assert got
        found += got
    return found


async def require_held_locks(queues: Queues) -> None:
    if not await queues.members.hold():
        pytest.skip("these brokers hold no locks")


def values(deliveries: list[Delivery]) -> list[bytes | None]:
    return sorted((each.record.value for each in deliveries), key=lambda value: value or b"")


def run(work: Callable[[], Awaitable[Any]]) -> None:
    async def main() -> None:
        await work()

    asyncio.run(main())


@pytest.mark.usefixtures("locks")
def test_what_was_published_before_the_group_existed_is_received(
    bootstrap: str, topic: str
) -> None:
    publish(bootstrap, topic, b"a", b"b", b"c")

    async def work() -> None:
        async with gateway(bootstrap) as queues:
            found = await drain(queues, topic, "g", 3)
            assert values(found) == [b"a", b"b", b"c"]
            assert all(each.record.key == each.record.value for each in found)
            assert all(each.record.headers == (("n", each.record.value),) for each in found)
            assert all(each.opened.delivery_count == 1 for each in found)
            settled = await queues.acknowledge([each.handle for each in found])
            assert [each.error for each in settled] == [None] * 3
            assert await queues.receive(topic, "g", count=10) == []

    run(work)


@pytest.mark.usefixtures("locks")
def test_a_settled_delivery_cannot_be_settled_again(bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a", b"b")

    async def work() -> None:
        async with gateway(bootstrap) as queues:
            first, second = await drain(queues, topic, "g", 2)
            assert (await queues.acknowledge([first.handle]))[0].error is None
            both = await queues.acknowledge([first.handle, second.handle])
            assert [each.error for each in both] == [SettleError.EXPIRED, None]

    run(work)


@pytest.mark.usefixtures("locks")
def test_what_is_released_comes_again_and_is_counted(bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a")

    async def work() -> None:
        async with gateway(bootstrap) as queues:
            (first,) = await drain(queues, topic, "g", 1)
            assert (await queues.release([first.handle], delay_ms=0))[0].error is None
            (second,) = await drain(queues, topic, "g", 1)
            assert (second.record.offset, second.opened.delivery_count) == (first.record.offset, 2)
            stale = await queues.acknowledge([first.handle])
            assert stale[0].error is SettleError.EXPIRED
            assert (await queues.acknowledge([second.handle]))[0].error is None

    run(work)


@pytest.mark.usefixtures("locks")
def test_a_delay_is_never_early(bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a")

    async def work() -> None:
        async with gateway(bootstrap) as queues:
            (first,) = await drain(queues, topic, "g", 1)
            released_s = time.monotonic()
            assert (await queues.release([first.handle], delay_ms=1_500))[0].error is None
            (again,) = await drain(queues, topic, "g", 1)
            assert time.monotonic() - released_s >= 1.5
            assert again.opened.delivery_count == 2

    run(work)


@pytest.mark.usefixtures("locks")
def test_what_is_rejected_does_not_come_again(bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a", b"b")

    async def work() -> None:
        async with gateway(bootstrap) as queues:
            first, second = await drain(queues, topic, "g", 2)
            assert (await queues.reject([first.handle]))[0].error is None
            assert (await queues.release([second.handle], delay_ms=0))[0].error is None
            assert values(await drain(queues, topic, "g", 1)) == [second.record.value]
            assert await queues.receive(topic, "g", count=10) == []

    run(work)


@pytest.mark.usefixtures("locks")
def test_a_lock_ends_and_an_extended_one_lasts(bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a", b"b")

    async def work() -> None:
        async with gateway(bootstrap) as queues:
            found: list[Delivery] = []
            while len(found) < 2:
                found += await queues.receive(
                    topic, "g", count=2, wait_ms=PATIENCE_MS, lock_ms=3_000
                )
            keep, lose = found
            extended = await queues.extend([keep.handle], lock_ms=600_000)
            if extended[0].error is not None:
                pytest.skip("the machine was too slow to extend a lock of 3 s")
            (again,) = await drain(queues, topic, "g", 1)
            while position(again) == position(keep):
                pytest.fail("an extended lock ended")
            assert position(again) == position(lose)
            assert (await queues.acknowledge([keep.handle]))[0].error is None

    run(work)


@pytest.mark.usefixtures("locks")
def test_waiting_consumers_share_what_comes(bootstrap: str, topic: str) -> None:
    async def work() -> None:
        async with gateway(bootstrap) as queues:
            waiting = [
                asyncio.create_task(queues.receive(topic, "g", count=10, wait_ms=PATIENCE_MS))
                for _ in range(300)
            ]
            assert await queues.receive(topic, "g") == []
            names = [b"%03d" % number for number in range(300)]
            await asyncio.to_thread(publish, bootstrap, topic, *names)
            found: list[Delivery] = []
            while len(found) < 300:
                done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                waiting = list(rest)
                found += [delivery for task in done for delivery in task.result()]
            assert values(found) == names
            assert len(queues.members) == 1
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    run(work)


@pytest.mark.usefixtures("locks")
def test_nothing_is_lost_with_consumers_that_go_while_they_wait(bootstrap: str, topic: str) -> None:
    async def work() -> None:
        async with gateway(bootstrap) as queues:
            waiting = [
                asyncio.create_task(queues.receive(topic, "g", count=10, wait_ms=PATIENCE_MS))
                for _ in range(20)
            ]
            assert await queues.receive(topic, "g") == []
            writing = asyncio.create_task(
                asyncio.to_thread(publish, bootstrap, topic, *(b"%03d" % n for n in range(200)))
            )
            for task in waiting:
                task.cancel()
                await asyncio.sleep(0)
            kept = await asyncio.gather(*waiting, return_exceptions=True)
            await writing
            found = [each for got in kept if isinstance(got, list) for each in got]
            found += await drain(queues, topic, "g", 200 - len(found))
            assert values(found) == [b"%03d" % n for n in range(200)]

    run(work)


def test_what_no_consumer_saw_is_put_back_uncounted(bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a")

    async def work() -> None:
        async with gateway(bootstrap) as queues:
            await require_held_locks(queues)
            for _ in range(7):  # More often than a record may be delivered.
                found = await drain(queues, topic, "g", 1)
                assert found[0].opened.delivery_count == 1
                queues.put_back(found)

    run(work)


def test_what_comes_while_a_gateway_stops_is_put_back_uncounted(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = ShareSession.fetch
    came = asyncio.Event()

    async def fetch_slowly(self: ShareSession, *arguments: Any) -> FetchedShares:
        fetched = await fetch(self, *arguments)
        if fetched.acquired:
            came.set()
            await asyncio.sleep(0.2)  # The answer is on its way.
        return fetched

    async def work() -> None:
        async with gateway(bootstrap) as other:
            await require_held_locks(other)
            with monkeypatch.context() as patched:
                patched.setattr(ShareSession, "fetch", fetch_slowly)
                async with gateway(bootstrap) as queues:
                    waiting = asyncio.create_task(
                        queues.receive(topic, "g", wait_ms=PATIENCE_MS, lock_ms=PATIENCE_MS)
                    )
                    assert await queues.receive(topic, "g") == []
                    await asyncio.to_thread(publish, bootstrap, topic, b"a")
                    await came.wait()
                    queues.stop_waiting()
                    assert await waiting == []
            (found,) = await drain(other, topic, "g", 1)
            assert found.opened.delivery_count == 1

    run(work)


def test_any_gateway_settles_what_another_delivered(bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a", b"b", b"c")

    async def work() -> None:
        async with gateway(bootstrap) as other:
            await require_held_locks(other)
            async with gateway(bootstrap) as queues:
                first, second, third = await drain(queues, topic, "g", 3)
            # That gateway is gone, along with its member, session and connections.
            assert await other.receive(topic, "g", count=10) == []
            assert (await other.acknowledge([first.handle]))[0].error is None
            assert (await other.extend([second.handle], lock_ms=600_000))[0].error is None
            assert (await other.release([third.handle], delay_ms=0))[0].error is None
            (again,) = await drain(other, topic, "g", 1)
            assert again.record.value == third.record.value
            assert (await other.acknowledge([second.handle]))[0].error is None

    run(work)


def test_handles_that_are_not_ours_change_nothing(bootstrap: str, topic: str) -> None:
    publish(bootstrap, topic, b"a")

    async def work() -> None:
        async with gateway(bootstrap) as queues:
            (found,) = await drain(queues, topic, "g", 1)
            forged = found.handle[:-4] + "AAAA"
            settled = await queues.acknowledge(["", "nonsense", forged, found.handle])
            assert [each.error for each in settled] == [SettleError.INVALID] * 3 + [None]
            other = await queues.acknowledge([found.handle], topic="another")
            assert other[0].error is SettleError.OTHER_QUEUE

    run(work)


def test_a_stop_answers_those_who_wait(bootstrap: str, topic: str) -> None:
    async def work() -> None:
        async with gateway(bootstrap) as queues:
            waiting = [
                asyncio.create_task(queues.receive(topic, "g", wait_ms=PATIENCE_MS))
                for _ in range(3)
            ]
            assert await queues.receive(topic, "g") == []
            queues.stop_waiting()
            assert await asyncio.gather(*waiting) == [[], [], []]
            assert await queues.receive(topic, "g", wait_ms=PATIENCE_MS) == []

    run(work)


def test_a_topic_that_does_not_exist(bootstrap: str) -> None:
    async def work() -> None:
        async with gateway(bootstrap) as queues:
            with pytest.raises(BrokerError, match="unknown topic"):
                await queues.receive("no-such-topic", "g")

    run(work)


def test_gateways_find_the_same_secret(bootstrap: str) -> None:
    async def work() -> None:
        async with Cluster(bootstrap) as one, Cluster(bootstrap) as two:
            found = await shared_secrets(one)
            assert found
            assert await shared_secrets(two) == found

    run(work)
