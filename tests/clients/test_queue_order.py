"""Share groups with `share.record.order=key`: one record of a key at a time, in order."""

from collections.abc import Callable, Iterator, Sequence

import pytest
from confluent_kafka import Producer
from kio.static.primitive import i64
from tests.clients.conftest import CreateTopic
from tests.clients.test_queues import (
    ACCEPT,
    HOUR_MS,
    PUT_BACK,
    REJECT,
    RELEASE,
    RENEW,
    TIMEOUT_S,
    Gateway,
)
from tests.clients.test_share_groups import configured_group

from ottla.protocol.errors import ErrorCode

pytestmark = pytest.mark.usefixtures("own_broker")


def publish(bootstrap: str, topic: str, keys: Sequence[str], **config: object) -> None:
    """In one batch."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 500, **config})
    for key in keys:
        producer.produce(topic, f"of {key}", key=None if key == "-" else key)
    assert producer.flush(TIMEOUT_S) == 0


class Queue:
    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self.gateway = Gateway(bootstrap, group, topic)
        self.gateway.join()

    def take(self, count: int = 500, **terms: int) -> list[int]:
        """The offsets that are available now."""
        taken: list[int] = []
        while found := self.gateway.receive(count - len(taken), wait_ms=0, **terms):
            taken.extend(each for first, last, _ in found for each in range(first, last + 1))
            if len(taken) >= count:
                break
        return sorted(taken)

    def wait(self) -> list[int]:
        return [each for low, high, _ in self.gateway.receive() for each in range(low, high + 1)]

    def accept(self, *offsets: int, count: int = 1) -> None:
        for offset in offsets:
            assert self.gateway.settle(offset, offset, count, ACCEPT) is ErrorCode.none


@pytest.fixture
def queue(
    request: pytest.FixtureRequest,
    bootstrap: str,
    create_topic: CreateTopic,
    new_name: Callable[[], str],
) -> Iterator[Queue]:
    config = getattr(request, "param", {})
    group = configured_group(bootstrap, new_name(), **{"share.record.order": "key", **config})
    queue = Queue(bootstrap, create_topic(), group)
    yield queue
    queue.gateway.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_a_key_waits_for_its_first_record_and_others_go_on(
    queue: Queue, bootstrap: str, codec: str
) -> None:
    publish(bootstrap, queue.gateway.topic, "aabac-a-", **{"compression.type": codec})

    assert queue.take() == [0, 2, 4, 5, 7]
    assert queue.take() == []
    queue.accept(2, 4, 5, 7)
    assert queue.take() == []
    queue.accept(0)
    assert queue.take() == [1]
    queue.accept(1)
    assert queue.take() == [3]
    queue.accept(3)
    assert queue.wait() == [6]
    queue.accept(6)
    assert queue.gateway.offsets() == (8, 0, 0)


def test_a_key_waits_while_its_record_is_held_or_delayed(queue: Queue, bootstrap: str) -> None:
    publish(bootstrap, queue.gateway.topic, "ab" * 2)
    assert queue.take(hold_ms=HOUR_MS) == [0, 1]
    queue.gateway.settle(0, 0, 1, RELEASE, delay_ms=i64(HOUR_MS))
    queue.accept(1)

    assert queue.take() == [3]
    queue.gateway.settle(0, 0, 1, RENEW, lock_ms=i64(HOUR_MS))
    assert queue.take() == []
    assert queue.gateway.settle(0, 0, 1, PUT_BACK) is ErrorCode.none
    assert queue.take() == [0]


def test_a_record_that_is_rejected_gives_its_key_away(queue: Queue, bootstrap: str) -> None:
    publish(bootstrap, queue.gateway.topic, "aaa")
    assert queue.take() == [0]

    assert queue.gateway.settle(0, 0, 1, REJECT) is ErrorCode.none
    assert queue.wait() == [1]


@pytest.mark.parametrize("queue", [{"share.delivery.count.limit": "2"}], indirect=True)
def test_a_record_that_is_given_up_gives_its_key_away(queue: Queue, bootstrap: str) -> None:
    publish(bootstrap, queue.gateway.topic, "aa")
    for count in (1, 2):
        assert queue.wait() == [0]
        queue.gateway.settle(0, 0, count, RELEASE, delay_ms=i64(0))

    assert queue.wait() == [1]


@pytest.mark.parametrize("queue", [{"share.isolation.level": "read_committed"}], indirect=True)
def test_records_of_aborted_transactions_hold_nobody_up(queue: Queue, bootstrap: str) -> None:
    topic = queue.gateway.topic
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(TIMEOUT_S)
    for end in (producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        producer.produce(topic, "1", key="a")
        producer.produce(topic, "2", key="a")
        assert producer.flush(TIMEOUT_S) == 0
        end(TIMEOUT_S)

    assert queue.wait() == [3]
    assert queue.take() == []
    queue.accept(3)
    assert queue.wait() == [4]


@pytest.mark.parametrize("queue", [{"share.record.order": "none"}], indirect=True)
def test_the_order_can_be_switched_on_and_off(queue: Queue, bootstrap: str) -> None:
    group = queue.gateway.group
    publish(bootstrap, queue.gateway.topic, "aabb")
    assert queue.take(2) == [0, 1]
    configured_group(bootstrap, group, **{"share.record.order": "key"})

    assert queue.take() == [2]
    assert queue.gateway.settle(1, 1, 1, RELEASE, delay_ms=i64(0)) is ErrorCode.none
    assert queue.take() == []
    queue.accept(0)
    assert queue.wait() == [1]
    configured_group(bootstrap, group, **{"share.record.order": "none"})
    assert queue.wait() == [3]


def test_the_order_survives_a_change_of_members(queue: Queue, bootstrap: str) -> None:
    publish(bootstrap, queue.gateway.topic, "ab" * 50)
    assert queue.take() == [0, 1]
    queue.gateway.close()
    other = Gateway(bootstrap, queue.gateway.group, queue.gateway.topic, "other")
    try:
        found = sorted(other.receive())
        assert found in ([(0, 1, 2)], [(0, 0, 2), (1, 1, 2)])
        assert other.receive(wait_ms=0) == []
    finally:
        other.close()
