"""The broker with a Dramatiq worker in this process, as users test their actors."""

import threading
from collections.abc import Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq import Worker
from dramatiq.errors import QueueJoinTimeout, QueueNotFound
from dramatiq.middleware import CurrentMessage
from dramatiq.results import Results
from dramatiq.results.backends import StubBackend

from ottla.integrations.dramatiq import DELAY_MS_MAX, OttlaBroker
from ottla.testing import EmbeddedBroker

PATIENCE_S = 60
PATIENCE_MS = PATIENCE_S * 1000


@pytest.fixture
def broker(ottla_broker: EmbeddedBroker, ottla_topic_prefix: str) -> Iterator[OttlaBroker]:
    broker = OttlaBroker(ottla_broker.bootstrap_servers, namespace=ottla_topic_prefix)
    yield broker
    broker.close()


@pytest.fixture
def worker(broker: OttlaBroker) -> Iterator[Worker]:
    worker = Worker(broker, worker_threads=4, worker_timeout=100)
    worker.start()
    yield worker
    worker.stop()


def test_join_waits_for_tasks_delays_and_retries(broker: OttlaBroker, worker: Worker) -> None:
    done: list[str] = []
    tries: list[int] = []

    @dramatiq.actor(broker=broker)
    def work(name: str) -> None:
        done.append(name)

    @dramatiq.actor(broker=broker, max_retries=1, min_backoff=10)
    def fail_once() -> None:
        tries.append(len(tries))
        if len(tries) == 1:
            raise RuntimeError("not yet")

    work.send("now")
    work.send_with_options(args=("later",), delay=500)
    fail_once.send()
    broker.join(work.queue_name, timeout=PATIENCE_MS)
    assert sorted(done) == ["later", "now"]
    assert tries == [0, 1]


def test_join_gives_up(broker: OttlaBroker) -> None:
    @dramatiq.actor(broker=broker)
    def work() -> None: ...

    work.send()
    with pytest.raises(QueueJoinTimeout):
        broker.join(work.queue_name, timeout=10)


def test_flush_drops_what_waits(broker: OttlaBroker) -> None:
    @dramatiq.actor(broker=broker, queue_name="a")
    def work() -> None: ...

    @dramatiq.actor(broker=broker, queue_name="b")
    def other() -> None: ...

    for actor in (work, other):
        actor.send()
        actor.send_with_options(delay=60_000)
    broker.flush("a")
    broker.join("a", timeout=PATIENCE_MS)
    with pytest.raises(QueueJoinTimeout):
        broker.join("b", timeout=10)
    broker.flush_all()
    broker.join("b", timeout=PATIENCE_MS)


@pytest.mark.parametrize("value", ["a task that fails", "an unknown actor", "no message"])
def test_what_cannot_be_done_becomes_a_dead_letter(
    broker: OttlaBroker,
    worker: Worker,
    ottla_broker: EmbeddedBroker,
    ottla_topic_prefix: str,
    value: str,
) -> None:
    @dramatiq.actor(broker=broker, max_retries=0)
    def fail() -> None:
        raise RuntimeError("never")

    topic = f"{ottla_topic_prefix}.default"
    if value == "a task that fails":
        fail.send()
    elif value == "an unknown actor":
        broker.enqueue(fail.message().copy(actor_name="nobody"))
    else:
        broker.engine.ensure_topic(topic)
        broker.engine.send(topic, b"not JSON", [])
    ottla_broker.wait_for(f"dlq.{topic}", 1)
    broker.join(fail.queue_name, timeout=PATIENCE_MS)


def test_a_worker_takes_no_more_than_its_prefetch(broker: OttlaBroker) -> None:
    broker.declare_queue("q")
    for number in range(3):
        broker.enqueue(_message(number))
    consumer = broker.consume("q", prefetch=2, timeout=PATIENCE_MS)
    first, second = next(consumer), next(consumer)
    assert first is not None
    assert second is not None
    hasty = broker.consume("q", prefetch=1, timeout=100)
    third = next(hasty)  # Other workers have it.
    assert third is not None
    assert next(hasty) is None
    acknowledging = threading.Timer(0.01, hasty.ack, [third])
    acknowledging.start()
    broker.enqueue(_message(3))
    while (fourth := next(hasty)) is None:
        pass
    acknowledging.join()
    assert sorted(each.args[0] for each in (first, second, third, fourth)) == [0, 1, 2, 3]
    for held in (first, second):
        consumer.ack(held)
    hasty.nack(fourth)


def test_messages_that_were_not_begun_go_back_at_once(broker: OttlaBroker) -> None:
    broker.declare_queue("q")
    for number in range(2):
        broker.enqueue(_message(number))
    consumer = broker.consume("q", prefetch=2, timeout=PATIENCE_MS)
    first = next(consumer)
    assert first is not None
    consumer.requeue([first])
    consumer.close()
    other = broker.consume("q", prefetch=2, timeout=PATIENCE_MS)
    again = [next(other), next(other)]
    assert sorted(each.args[0] for each in again if each is not None) == [0, 1]


def test_undeclared_queues_and_long_delays_are_refused(broker: OttlaBroker) -> None:
    with pytest.raises(QueueNotFound):
        broker.consume("nowhere")
    with pytest.raises(ValueError, match="seven days"):
        broker.enqueue(_message(0), delay=DELAY_MS_MAX + 1)


def test_results_pipelines_and_groups_work(broker: OttlaBroker, worker: Worker) -> None:
    broker.add_middleware(Results(backend=StubBackend()))
    broker.add_middleware(CurrentMessage())

    @dramatiq.actor(broker=broker, store_results=True)
    def add(left: int, right: int) -> int:
        assert CurrentMessage.get_current_message() is not None
        return left + right

    rest = add.message(3)  # type: ignore[call-arg]  # The pipeline hands over the other.
    pipe = dramatiq.pipeline([add.message(1, 2), rest], broker=broker).run()
    assert pipe.get_result(block=True, timeout=PATIENCE_MS) == 6
    group = dramatiq.group([add.message(number, 1) for number in range(3)], broker=broker).run()
    assert sorted(group.get_results(block=True, timeout=PATIENCE_MS)) == [1, 2, 3]


def _message(number: int) -> "dramatiq.Message[Any]":
    return dramatiq.Message(
        queue_name="q", actor_name="work", args=(number,), kwargs={}, options={}
    )
