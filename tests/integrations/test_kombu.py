"""The transport as kombu programs use it, without Celery."""

import threading
from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest
from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import OperationalError
from tests.integrations.processes import wait_until
from tests.ports import HOST, ReservedPort

import ottla.integrations.kombu  # noqa: F401
from ottla.client import Admin
from ottla.integrations.engine import ENGINE_THREAD
from ottla.testing import EmbeddedBroker

PATIENCE_S = 60


@pytest.fixture
def url(ottla_broker: EmbeddedBroker) -> str:
    return f"ottla://{ottla_broker.bootstrap_servers}"


@pytest.fixture
def connection(url: str, ottla_topic_prefix: str) -> Iterator[Connection]:
    options = {"group": ottla_topic_prefix, "priority_steps": [0, 5]}
    with Connection(url, transport_options=options) as connection:
        yield connection


@pytest.fixture
def name(ottla_topic_prefix: str) -> str:
    return f"{ottla_topic_prefix}queue"


def test_several_servers_are_shown_without_the_password() -> None:
    """A Celery worker shows them when it starts."""
    connection = Connection("ottla://anna:secret@one:9092,two:9092?linger_ms=1")
    assert connection.as_uri() == "ottla://anna:**@one:9092,two:9092?linger_ms=1"
    assert "secret" in connection.as_uri(include_password=True)


def test_a_connection_that_fails_leaves_no_thread() -> None:
    before = engine_threads()
    connection = Connection(f"ottla://{HOST}:{ReservedPort()}")
    with pytest.raises(OperationalError):
        connection.ensure_connection(max_retries=1, interval_start=0)
    assert engine_threads() <= before


def engine_threads() -> set[threading.Thread]:
    """Only the transport's own threads: other tests' brokers start and end threads meanwhile."""
    return {thread for thread in threading.enumerate() if thread.name == ENGINE_THREAD}


def test_it_fails_over_to_the_next_url(url: str, name: str) -> None:
    connection = Connection(f"ottla://{HOST}:{ReservedPort()};{url}")
    with connection, connection.SimpleQueue(name) as queue:
        queue.put("lamp")
        assert queue.get(timeout=PATIENCE_S).payload == "lamp"


def test_messages_are_acknowledged_one_by_one(connection: Connection, name: str) -> None:
    with connection.channel() as channel, connection.SimpleQueue(name, channel=channel) as queue:
        for number in range(3):
            queue.put({"number": number})
        taken = [queue.get(timeout=PATIENCE_S) for _ in range(3)]
        taken[1].ack()
        assert [message.payload["number"] for message in taken] == [0, 1, 2]
    with connection.SimpleQueue(name) as queue:
        left = [queue.get(timeout=PATIENCE_S) for _ in range(2)]
        assert sorted(message.payload["number"] for message in left) == [0, 2]
        # A closed channel gave them back, which does not count.
        assert not any(message.delivery_info["redelivered"] for message in left)
        for message in left:
            message.ack()
        with pytest.raises(Empty):
            queue.get(block=False)


def test_a_requeued_message_comes_again_and_a_rejected_one_is_a_dead_letter(
    connection: Connection, name: str, ottla_broker: EmbeddedBroker
) -> None:
    with connection.SimpleQueue(name) as queue:
        queue.put("lamp")
        queue.get(timeout=PATIENCE_S).requeue()
        again = queue.get(timeout=PATIENCE_S)
        assert again.delivery_info["redelivered"]
        again.reject()
        ottla_broker.wait_for(f"dlq.{name}", 1)


def test_a_requeued_message_is_there_at_once(connection: Connection, name: str) -> None:
    with connection.SimpleQueue(name) as queue:
        queue.put("lamp")
        got: list[Any] = []

        def receive() -> bool:
            got.append(queue.channel.basic_get(name))
            return got[-1] is not None

        wait_until(receive, "the message")
        for _ in range(3):
            got[-1].requeue()
            got.append(queue.channel.basic_get(name))
            assert got[-1] is not None
        got[-1].ack()


def test_a_queue_that_nobody_has_consumed_has_a_size(connection: Connection, name: str) -> None:
    with connection.SimpleQueue(name) as queue:
        for number in range(3):
            queue.put(number)
    with connection.channel() as channel:
        bound = Queue(name, channel=channel)
        assert bound.queue_declare(passive=True).message_count == 3


def test_higher_priorities_come_first(connection: Connection, name: str) -> None:
    queue = Queue(name, Exchange(name), name)
    with connection.Producer() as producer:
        for priority in (0, 9, 4, 5):
            producer.publish(
                priority, exchange=name, routing_key=name, declare=[queue], priority=priority
            )
    got: list[int] = []
    with connection.channel() as channel:
        channel.basic_qos(prefetch_count=1)
        with Consumer(channel, [queue], callbacks=[_note(got)]):
            while len(got) < 4:
                connection.drain_events(timeout=PATIENCE_S)
    assert sorted(got[:2]) == [5, 9]
    assert sorted(got[2:]) == [0, 4]


def test_every_queue_of_a_fanout_exchange_has_every_message(
    connection: Connection, url: str, name: str
) -> None:
    exchange = Exchange(name, type="fanout")
    kept = Queue(f"{name}-kept", exchange)
    alone = Queue(f"{name}-alone", exchange, durable=False, auto_delete=True)
    by_queue: dict[str, list[str]] = {kept.name: [], alone.name: []}
    with connection.channel() as channel, Connection(url) as other:
        for queue in (kept, alone):
            Consumer(channel, [queue], callbacks=[_note(by_queue[queue.name])]).consume()
        # Another process that has not declared the queues.
        with other.Producer(exchange=exchange) as producer:
            for word in ("one", "two"):
                producer.publish(word)
        while any(len(got) < 2 for got in by_queue.values()):
            connection.drain_events(timeout=PATIENCE_S)
    assert by_queue == {kept.name: ["one", "two"], alone.name: ["one", "two"]}


def test_a_topic_exchange_routes_by_pattern(connection: Connection, name: str) -> None:
    exchange = Exchange(name, type="topic")
    queue = Queue(f"{name}-alone", exchange, "order.*", durable=False, auto_delete=True)
    got: list[str] = []
    with connection.channel() as channel:
        Consumer(channel, [queue], callbacks=[_note(got)]).consume()
        producer = Producer(channel, exchange=exchange)
        for key in ("bill.paid", "order.placed", "order.sent"):
            producer.publish(key, routing_key=key)
        while len(got) < 2:
            connection.drain_events(timeout=PATIENCE_S)
    assert got == ["order.placed", "order.sent"]


def test_an_unacknowledged_message_stops_a_channel_with_a_prefetch_count_of_one(
    connection: Connection, name: str
) -> None:
    got: list[Any] = []
    queue = Queue(name, Exchange(name), name)
    with connection.channel() as channel:
        channel.basic_qos(prefetch_count=1)
        Consumer(channel, [queue], callbacks=[lambda _, message: got.append(message)]).consume()
        producer = Producer(channel, exchange=Exchange(name))
        for word in ("one", "two"):
            producer.publish(word, routing_key=name)
        connection.drain_events(timeout=PATIENCE_S)
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=0.2)
        got[0].ack()
        connection.drain_events(timeout=PATIENCE_S)
        got[1].ack()
    assert [message.payload for message in got] == ["one", "two"]


def _note(got: list[Any]) -> Any:
    def note(body: Any, message: Any) -> None:
        got.append(body)
        message.ack()

    return note


def test_what_was_taken_ahead_goes_to_another_who_asks(url: str, name: str) -> None:
    """Gets in quick succession fetch more than they return, but withhold none of it."""
    options = {"group": name}
    with (
        Connection(url, transport_options=options) as one,
        Connection(url, transport_options=options) as other,
    ):
        numbers: list[int] = []

        def get(queue: Any) -> bool:
            message = queue.get()
            if message is not None:
                message.ack()
                numbers.append(message.payload)
            return message is not None

        queue, late = Queue(name)(one.channel()), Queue(name)(other.channel())
        queue.declare()
        producer = Producer(queue.channel, routing_key=name)
        for number in range(20):
            producer.publish(number)
        for _ in range(4):  # One, then one of two, then one of four.
            assert get(queue)
        wait_until(lambda: get(late) and len(numbers) == 20, "all of them")
        assert sorted(numbers) == list(range(20))


def test_what_was_taken_ahead_still_counts(url: str, name: str) -> None:
    with Connection(url, transport_options={"group": name}) as connection:
        queue = Queue(name)(connection.channel())
        queue.declare()
        producer = Producer(queue.channel, routing_key=name)
        for number in range(10):
            producer.publish(number)
        for _ in range(3):
            message = queue.get()
            assert message is not None
            message.ack()
        assert queue.queue_declare(passive=True).message_count == 7


def test_acknowledgements_of_many_threads_all_arrive(url: str, name: str) -> None:
    with Connection(url, transport_options={"group": name}) as connection:
        with connection.SimpleQueue(name) as queue:
            for number in range(60):
                queue.put(number)
            messages = [queue.get(timeout=PATIENCE_S) for _ in range(60)]
            threads = [threading.Thread(target=each.ack) for each in messages]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert connection.SimpleQueue(name).qsize() == 0
        with connection.SimpleQueue(name) as queue, pytest.raises(Empty):
            queue.get(block=False)


def test_it_logs_in(name: str) -> None:
    locked = {
        "listeners": f"SASL_PLAINTEXT://{HOST}:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.plain.without.tls": True,
    }
    with EmbeddedBroker(config=locked) as broker:
        Admin(bootstrap_servers=broker.bootstrap_servers).set_user("anna", "a:secret")
        servers = broker.servers_of("SASL_PLAINTEXT")
        how = "security_protocol=SASL_PLAINTEXT&sasl_mechanism=SCRAM-SHA-512"
        with (
            Connection(f"ottla://anna:a%3Asecret@{servers}?{how}") as connection,
            connection.SimpleQueue(name) as queue,
        ):
            queue.put("lamp")
            message = queue.get(timeout=PATIENCE_S)
            assert message.payload == "lamp"
            message.ack()
        with (
            Connection(f"ottla://anna:another@{servers}?{how}") as connection,
            pytest.raises(OperationalError, match="Authentication failed"),
        ):
            connection.ensure_connection(max_retries=1, interval_start=0)
