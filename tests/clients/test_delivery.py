"""Acks, idempotence and the limit of a message's size."""

import pytest
from tests.clients.client import Client, ProduceOptions, Refused, Sent
from tests.clients.conftest import CreateTopic

from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize("acks", [1, "all"])
def test_acknowledged_records_can_be_read(client: Client, acks: int | str, topic: str) -> None:
    options = ProduceOptions(acks=acks, idempotent=False)
    assert client.produce(topic, [Sent(value=b"a"), Sent(value=b"b")], options) == [0, 1]
    assert [record.value for record in client.consume(topic, 0, 0, 2)] == [b"a", b"b"]


def test_records_that_nobody_acknowledges_arrive_too(client: Client, topic: str) -> None:
    client.produce(
        topic, [Sent(value=b"a"), Sent(value=b"b")], ProduceOptions(acks=0, idempotent=False)
    )
    assert [record.value for record in client.consume(topic, 0, 0, 2)] == [b"a", b"b"]


@pytest.mark.parametrize("idempotent", [True, False])
def test_two_producers_one_after_the_other(client: Client, idempotent: bool, topic: str) -> None:
    options = ProduceOptions(idempotent=idempotent)
    assert client.produce(topic, [Sent()] * 3, options) == [0, 1, 2]
    assert client.produce(topic, [Sent()] * 3, options) == [3, 4, 5]
    assert len(client.consume(topic, 0, 0, 6)) == 6


def test_a_message_just_below_the_default_limit(client: Client, topic: str) -> None:
    """max.message.bytes is 1048588: 1 MiB plus batch overhead."""
    value = bytes(1_048_588 - 100)
    client.produce(topic, [Sent(value=value)])
    [record] = client.consume(topic, 0, 0, 1)
    assert record.value == value


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_message_above_the_limit_is_refused(
    client: Client, idempotent: bool, create_topic: CreateTopic
) -> None:
    topic = create_topic(**{"max.message.bytes": "1000"})
    with pytest.raises(Refused) as refusal:
        client.produce(topic, [Sent(value=bytes(1000))], ProduceOptions(idempotent=idempotent))
    assert refusal.value.code == ErrorCode.message_too_large
    client.produce(topic, [Sent(value=bytes(800))])
    assert client.offsets(topic, 0) == (0, 1)


def test_a_compressed_message_counts_by_its_compressed_size(
    client: Client, create_topic: CreateTopic
) -> None:
    topic = create_topic(**{"max.message.bytes": "1000"})
    client.produce(topic, [Sent(value=bytes(10_000))], ProduceOptions(codec="gzip"))
    [record] = client.consume(topic, 0, 0, 1)
    assert record.value == bytes(10_000)


def test_the_limit_of_a_topic_can_be_raised(client: Client, create_topic: CreateTopic) -> None:
    topic = create_topic(**{"max.message.bytes": "1000"})
    client.set_topic_config(topic, "max.message.bytes", "3000000")
    value = bytes(1_900_000)
    client.produce(topic, [Sent(value=value)])
    [record] = client.consume(topic, 0, 0, 1)
    assert record.value == value
