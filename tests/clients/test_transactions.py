"""Transactions with every client: all of one is read, or nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import CreateTopic
from tests.clients.transactional import (
    PRODUCERS,
    ConfluentProducer,
    TransactionalProducer,
    values,
)

NewProducer = Callable[..., TransactionalProducer]


@pytest.fixture(params=PRODUCERS)
def new_producer(
    request: pytest.FixtureRequest, bootstrap: str, new_name: Callable[[], str]
) -> Iterator[NewProducer]:
    """Producers of one client, all with the same transactional id."""
    transactional_id = new_name()
    made: list[TransactionalProducer] = []

    def create(**more: Any) -> TransactionalProducer:
        made.append(PRODUCERS[request.param](bootstrap, transactional_id, **more))
        return made[-1]

    yield create
    for producer in made:
        producer.close()


def test_what_is_committed_is_read(
    new_producer: NewProducer, bootstrap: str, create_topic: CreateTopic
) -> None:
    topic = create_topic(2)
    producer = new_producer()
    for number in range(3):
        producer.begin()
        producer.send(topic, 0, b"a%d" % number)
        producer.send(topic, 1, b"b%d" % number)
        producer.commit()
    assert values(bootstrap, topic, 0) == [b"a0", b"a1", b"a2"]
    assert values(bootstrap, topic, 1) == [b"b0", b"b1", b"b2"]


def test_what_is_aborted_is_not_read(new_producer: NewProducer, bootstrap: str, topic: str) -> None:
    producer = new_producer()
    for number in range(4):
        producer.begin()
        producer.send(topic, 0, b"%d" % number)
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    assert values(bootstrap, topic) == [b"0", b"2"]
    everything = values(bootstrap, topic, isolation="read_uncommitted")
    assert everything == [b"0", b"1", b"2", b"3"]


def test_what_is_open_is_not_read_yet(
    new_producer: NewProducer, bootstrap: str, confluent: ConfluentClient, topic: str
) -> None:
    producer = new_producer()
    producer.begin()
    producer.send(topic, 0, b"open")
    plain = ConfluentProducer(bootstrap, f"{topic}-other")
    plain.begin()
    plain.send(topic, 0, b"behind")
    plain.commit()
    assert values(bootstrap, topic) == []
    assert values(bootstrap, topic, isolation="read_uncommitted") == [b"open", b"behind"]
    producer.commit()
    assert values(bootstrap, topic) == [b"open", b"behind"]


def test_the_newest_producer_fences_the_others(
    new_producer: NewProducer, bootstrap: str, topic: str
) -> None:
    first = new_producer()
    first.begin()
    first.send(topic, 0, b"of a zombie")
    second = new_producer()
    second.begin()
    second.send(topic, 0, b"of the newest")
    second.commit()
    with pytest.raises(Exception, match=r"(?i)fence|epoch"):
        first.commit()
    assert values(bootstrap, topic) == [b"of the newest"]


def test_a_late_transaction_is_aborted(bootstrap: str, topic: str) -> None:
    late = ConfluentProducer(bootstrap, f"{topic}-late", **{"transaction.timeout.ms": 1000})
    late.begin()
    late.send(topic, 0, b"late")
    other = ConfluentProducer(bootstrap, f"{topic}-other")
    other.begin()
    other.send(topic, 0, b"in time")
    other.commit()
    while not values(bootstrap, topic):
        pass  # Until the first one times out.
    with pytest.raises(KafkaException, match=r"(?i)fence|epoch"):
        late.commit()
    assert values(bootstrap, topic) == [b"in time"]
