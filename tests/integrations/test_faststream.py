"""Unmodified FastStream, with both of its Kafka clients."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from faststream import AckPolicy, FastStream
from tests.integrations.faststream_brokers import new_broker
from tests.integrations.processes import PATIENCE_S, Journal, Worker, wait_until

from ottla.client import Admin, ShareMessage
from ottla.client.aio import ShareConsumer
from ottla.testing import EmbeddedBroker

Ends = Callable[[], Awaitable[None]]


@pytest.fixture(params=["aiokafka", "confluent"])
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def broker(client: str, ottla_broker: EmbeddedBroker) -> Any:
    return new_broker(client, ottla_broker.bootstrap_servers)


@pytest.fixture
def topic(ottla_broker: EmbeddedBroker, ottla_topic_prefix: str) -> str:
    return ottla_broker.topic(f"{ottla_topic_prefix}in", partitions=1)


async def run_until(broker: Any, done: Callable[[], object], begin: Ends) -> None:
    async with asyncio.timeout(PATIENCE_S), broker:
        await broker.start()
        await begin()
        await asyncio.to_thread(wait_until, done, "the end")


def test_what_a_handler_returns_is_published(
    broker: Any, topic: str, ottla_broker: EmbeddedBroker
) -> None:
    out = ottla_broker.topic(f"{topic}-out", partitions=1)

    @broker.subscriber(topic, group_id=topic, auto_offset_reset="earliest")
    @broker.publisher(out, key=b"k")
    async def double(number: int) -> int:
        return 2 * number

    async def begin() -> None:
        for number in range(3):
            await broker.publish(number, topic, key=b"k", headers={"h": "1"})

    asyncio.run(run_until(broker, lambda: len(ottla_broker.records(out)) == 3, begin))
    assert [(each.key, each.value) for each in ottla_broker.records(out)] == [
        (b"k", b"0"),
        (b"k", b"2"),
        (b"k", b"4"),
    ]


def test_a_handler_that_fails_has_the_record_again(broker: Any, topic: str) -> None:
    seen: list[str] = []

    @broker.subscriber(
        topic, group_id=topic, auto_offset_reset="earliest", ack_policy=AckPolicy.NACK_ON_ERROR
    )
    async def fail_once(word: str) -> None:
        seen.append(word)
        if seen == ["one"]:
            raise RuntimeError("not yet")

    async def begin() -> None:
        for word in ("one", "two"):
            await broker.publish(word, topic)

    asyncio.run(run_until(broker, lambda: len(seen) >= 3, begin))
    assert seen == ["one", "one", "two"]


def test_batches_are_published_and_consumed(broker: Any, topic: str) -> None:
    seen: list[int] = []

    @broker.subscriber(topic, group_id=topic, auto_offset_reset="earliest", batch=True)
    async def take(numbers: list[int]) -> None:
        seen.extend(numbers)

    async def begin() -> None:
        await broker.publish_batch(*range(10), topic=topic)

    asyncio.run(run_until(broker, lambda: len(seen) == 10, begin))
    assert seen == list(range(10))


def test_a_share_consumer_lives_beside_the_subscribers(
    broker: Any, topic: str, ottla_broker: EmbeddedBroker
) -> None:
    """As on the documentation page."""
    app = FastStream(broker)
    stop = asyncio.Event()
    done: list[bytes] = []
    tries: list[bytes] = []
    consuming: list[asyncio.Task[None]] = []
    servers = ottla_broker.bootstrap_servers

    async def work(message: ShareMessage) -> None:
        tries.append(message.value)
        if tries == [b"one"]:
            raise RuntimeError("not yet")
        done.append(message.value)
        if len(done) == 2:
            app.exit()

    @app.after_startup
    async def start() -> None:
        earliest = {"share.auto.offset.reset": "earliest"}
        await asyncio.to_thread(Admin(bootstrap_servers=servers).set_configs, earliest, group=topic)
        consumer = ShareConsumer(bootstrap_servers=servers, group_id=topic)
        await consumer.subscribe([topic])
        consuming.append(asyncio.create_task(consumer.run(work, stop=stop)))
        for word in ("one", "two"):
            await broker.publish(word, topic)

    @app.on_shutdown
    async def end() -> None:
        stop.set()
        await consuming[0]

    asyncio.run(asyncio.wait_for(app.run(), PATIENCE_S))
    assert sorted(done) == [b"one", b"two"]
    assert len(tries) == 3


@pytest.mark.process
def test_a_killed_worker_s_records_are_read_again_elsewhere(
    client: str, ottla_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    queue = ottla_broker.topic(f"killed-{uuid.uuid4().hex[:8]}", partitions=1)
    journal = Journal(tmp_path / "journal")
    environment = {
        "OTTLA_BOOTSTRAP_SERVER": ottla_broker.bootstrap_servers,
        "TASKS_CLIENT": client,
        "TASKS_JOURNAL": str(journal.path),
        "TASKS_QUEUE": queue,
    }
    command = ("faststream", "run", "tests.integrations.faststream_tasks:app")
    sender = new_broker(client, ottla_broker.bootstrap_servers)

    async def begin() -> None:
        await sender.publish("quick", queue)
        await sender.publish("slow", queue)

    asyncio.run(run_until(sender, lambda: True, begin))
    with Worker(command, tmp_path, **environment) as worker:
        wait_until(lambda: journal.count("begun", ["slow"]), "a record that is worked on", worker)
        worker.kill()
    with Worker(command, tmp_path, "other", **environment) as other:
        wait_until(lambda: journal.count("done", ["slow"]), "the record elsewhere", other)
    assert journal.count("begun", ["slow"]) == 2
    assert journal.count("begun", ["quick"]) == 1
