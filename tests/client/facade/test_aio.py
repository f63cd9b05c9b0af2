import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from confluent_kafka import KafkaException

from ottla import client
from ottla.client import Admin, BufferFull, OffsetResetPolicy, WhenFull, aio
from ottla.client.aio import Consumer, Producer, ShareConsumer
from ottla.client.errors import NotFlushed
from ottla.client.messages import Message
from ottla.testing import EmbeddedBroker

Program = Callable[..., Coroutine[Any, Any, None]]
# Between the two forms of a client, and from confluent-kafka.
INTERNAL = {
    *("fill", "forget_handed_out", "group_metadata", "positions_to_commit", "take"),
    *("on_handled", "settle", "raw", "send_now"),
}
EARLIEST: dict[str, Any] = {"auto_offset_reset": OffsetResetPolicy.EARLIEST}


def in_loop(program: Program) -> Callable[[EmbeddedBroker], None]:
    def test(broker: EmbeddedBroker) -> None:
        asyncio.run(program(broker))

    test.__name__ = program.__name__
    return test


@in_loop
async def test_send_and_read(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        futures = [await producer.send(topic, number) for number in range(1000)]
        written = await asyncio.gather(*futures)
        assert [record.offset for record in written] == list(range(1000))
    settings: dict[str, Any] = {"group_id": topic, "enable_auto_commit": False, **EARLIEST}
    async with Consumer(bootstrap_servers=broker.bootstrap_servers, **settings) as consumer:
        await consumer.subscribe(topic)
        async for message in consumer:
            if message.offset == 399:
                await consumer.commit()
                break
        assert await consumer.committed() == {(topic, 0): 400}
        assert await consumer.lag() == {(topic, 0): 600}
        assert [record.offset for record in await consumer.poll(max_records=2)] == [400, 401]


def test_it_has_every_name_of_the_blocking_clients() -> None:
    for name in ("Admin", "Consumer", "Producer", "ShareConsumer"):
        own, blocking = getattr(aio, name), getattr(client, name)
        missing = {each for each in dir(blocking) if not each.startswith("_")} - set(dir(own))
        assert missing <= INTERNAL


@in_loop
async def test_subscribe_and_assign_return_the_consumer(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    servers = broker.bootstrap_servers
    async with Consumer(bootstrap_servers=servers, group_id=topic) as consumer:
        assert await consumer.assign([(topic, 0)]) is consumer
        assert consumer.assignment == [(topic, 0)]
        await consumer.unsubscribe()
        assert await consumer.subscribe(topic) is consumer
    async with ShareConsumer(bootstrap_servers=servers, group_id=topic) as queue:
        assert await queue.subscribe(topic) is queue


@in_loop
async def test_the_event_loop_is_not_held_up(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    async with Consumer(bootstrap_servers=broker.bootstrap_servers, **EARLIEST) as consumer:
        await consumer.assign([(topic, 0)])
        assert await consumer.poll(timeout=1.0) == []
    ticking.cancel()
    assert ticks > 3


@in_loop
async def test_failures_reach_their_future(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    broker.faults.fail_next("Produce", "MESSAGE_TOO_LARGE")
    async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        future = await producer.send(topic, b"lamp")
        with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
            await future
        broker.faults.delay_next("Produce", 1.0)
        await producer.send(topic, b"late")
        with pytest.raises(NotFlushed):
            await producer.flush(0.01)


@in_loop
async def test_the_buffer_is_bounded(broker: EmbeddedBroker) -> None:
    topic = broker.topic("orders")
    small: dict[str, Any] = {"buffer_memory": 64 * 1024}
    async with Producer(bootstrap_servers=broker.bootstrap_servers, **small) as producer:
        for _ in range(300):
            await producer.send(topic, bytes(1024))
    assert len(broker.records(topic)) == 300
    broker.faults.delay_next("Produce", 1.0)
    small["when_full"] = WhenFull.RAISE
    async with Producer(bootstrap_servers=broker.bootstrap_servers, **small) as producer:
        with pytest.raises(BufferFull):
            await asyncio.gather(*[producer.send(topic, bytes(1024)) for _ in range(300)])


@in_loop
async def test_transactions(broker: EmbeddedBroker) -> None:
    source, target = broker.topic("orders"), broker.topic("bills")
    servers = broker.bootstrap_servers
    async with Producer(bootstrap_servers=servers) as producer:
        await producer.send(source, b"lamp")
    settings: dict[str, Any] = {"group_id": source, "enable_auto_commit": False, **EARLIEST}
    async with (
        Consumer(bootstrap_servers=servers, **settings) as consumer,
        Producer(bootstrap_servers=servers, transactional_id=source) as producer,
    ):
        await consumer.subscribe(source)
        for is_last in (False, True):
            while not (messages := await consumer.poll()):
                pass
            async with producer.transaction(consumer) as transaction:
                await producer.send(target, messages[0].value)
                if not is_last:
                    transaction.abort()
        assert await consumer.committed() == {(source, 0): 1}
    assert [message.value for message in broker.records(target)] == [b"lamp"]


@in_loop
async def test_queues(broker: EmbeddedBroker) -> None:
    topic, servers = broker.topic("tasks"), broker.bootstrap_servers
    Admin(bootstrap_servers=servers).set_configs(
        {"share.auto.offset.reset": "earliest"}, group=topic
    )
    async with Producer(bootstrap_servers=servers) as producer:
        for number in range(3):
            await producer.send(topic, number)
    async with ShareConsumer(bootstrap_servers=servers, group_id=topic) as consumer:
        await consumer.subscribe(topic)
        async for message in consumer:
            await consumer.ack(message)
            break
    stop, done = asyncio.Event(), []

    async def handle(message: Any) -> None:
        done.append((int(message.value), message.delivery_count))
        if len(done) == 1:
            raise ValueError("try again")
        if len(done) == 3:
            stop.set()

    workers = ShareConsumer(bootstrap_servers=servers, group_id=topic)
    await workers.subscribe(topic)
    await workers.run(handle, stop=stop)
    assert {value for value, _ in done} == {1, 2}


def test_tasks_run_at_once_and_finish_after_a_signal(broker: EmbeddedBroker, servers: str) -> None:
    topic = broker.topic("tasks")
    earliest = {"share.auto.offset.reset": "earliest"}
    Admin(bootstrap_servers=servers).set_configs(earliest, group=topic)
    done: list[bytes] = []

    async def work() -> None:
        async with Producer(bootstrap_servers=servers) as producer:
            for number in range(3):
                await producer.send(topic, str(number))
        together = asyncio.Barrier(3)

        async def handle(message: Message) -> None:
            await together.wait()  # Blocks unless three run at once.
            if message.value == b"0":
                os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.1)
            done.append(message.value)

        consumer = ShareConsumer(bootstrap_servers=servers, group_id=topic)
        await consumer.subscribe(topic)
        await consumer.run(handle, concurrency=3)

    before = signal.getsignal(signal.SIGTERM)
    asyncio.run(work())
    assert sorted(done) == [b"0", b"1", b"2"]
    assert signal.getsignal(signal.SIGTERM) is before
