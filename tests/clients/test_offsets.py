"""Start and end offsets, and offsets by timestamp."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition
from confluent_kafka.admin import OffsetSpec
from tests.clients.client import TIMEOUT_S, Client, Refused, Sent
from tests.clients.confluent_client import ConfluentClient

from ottla.protocol.errors import ErrorCode

TIME_MS = 1_700_000_000_000


def test_an_empty_partition(client: Client, topic: str) -> None:
    assert client.offsets(topic, 0) == (0, 0)
    assert client.offset_for_time(topic, 0, 0) is None


def test_start_and_end(client: Client, topic: str) -> None:
    client.produce(topic, [Sent()] * 5)
    assert client.offsets(topic, 0) == (0, 5)


def test_the_first_record_of_a_time_or_later(client: Client, topic: str) -> None:
    for number in range(3):
        client.produce(topic, [Sent(timestamp_ms=TIME_MS + 1000 * number)])
    found = {
        after_ms: client.offset_for_time(topic, 0, TIME_MS + after_ms)
        for after_ms in (-1000, 0, 1, 1000, 1001, 2000, 2001)
    }
    assert found == {-1000: 0, 0: 0, 1: 1, 1000: 1, 1001: 2, 2000: 2, 2001: None}


def test_times_inside_one_batch(client: Client, topic: str) -> None:
    records = [Sent(timestamp_ms=TIME_MS + 1000 * number) for number in range(10)]
    client.produce(topic, records)
    assert client.offset_for_time(topic, 0, TIME_MS + 4500) == 5


def test_times_that_are_out_of_order(client: Client, topic: str) -> None:
    """It is the first match in the log, not the nearest one."""
    for after_ms in (0, 5000, 1000, 5000):
        client.produce(topic, [Sent(timestamp_ms=TIME_MS + after_ms)])
    assert client.offset_for_time(topic, 0, TIME_MS + 1000) == 1


def test_reading_past_the_end_is_refused(client: Client, topic: str) -> None:
    client.produce(topic, [Sent()])
    with pytest.raises(Exception) as refusal:  # noqa: PT011 - Each client has an error of its own.
        client.consume(topic, 0, 100, 1)
    assert "offset" in f"{type(refusal.value).__name__} {refusal.value}".lower()


def test_seeking_back_and_forth(confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent(value=b"%d" % number) for number in range(10)])
    with confluent.consumer(**{"enable.partition.eof": True}) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        values = []
        for offset in (7, 2, 9, 0):
            first = consumer.poll(TIMEOUT_S)
            assert first is not None
            consumer.seek(TopicPartition(topic, 0, offset))
            while (message := consumer.poll(TIMEOUT_S)) and (
                message.error() or message.offset() != offset
            ):
                pass
            values.append(message and message.value())
    assert values == [b"7", b"2", b"9", b"0"]


def test_a_consumer_at_the_end_sees_only_what_comes(confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent(value=b"old")])
    with confluent.consumer(**{"enable.partition.eof": True}) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        end = consumer.poll(TIMEOUT_S)
        assert end is not None
        assert end.error() is not None
        confluent.produce(topic, [Sent(value=b"new")])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.value() == b"new"


def test_the_offset_of_the_largest_timestamp(confluent: ConfluentClient, topic: str) -> None:
    for after_ms in (0, 9000, 1000):
        confluent.produce(topic, [Sent(timestamp_ms=TIME_MS + after_ms)])
    topic_partition = TopicPartition(topic, 0)
    future = confluent.admin.list_offsets({topic_partition: OffsetSpec.max_timestamp()})[
        topic_partition
    ]
    found = confluent.wait(future)
    assert (found.offset, found.timestamp) == (1, TIME_MS + 9000)


def test_deleting_records_moves_the_start(confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent(value=b"%d" % number) for number in range(10)])
    topic_partition = TopicPartition(topic, 0, 4)
    deleted = confluent.wait(confluent.admin.delete_records([topic_partition])[topic_partition])
    assert deleted.low_watermark == 4
    assert confluent.offsets(topic, 0) == (4, 10)
    assert [record.value for record in confluent.consume(topic, 0, 4, 1)] == [b"4"]
    with pytest.raises(Refused):
        confluent.consume(topic, 0, 3, 1)


def test_deleting_records_past_the_end_is_refused(confluent: ConfluentClient, topic: str) -> None:
    confluent.produce(topic, [Sent()])
    topic_partition = TopicPartition(topic, 0, 2)
    with pytest.raises(Refused) as refusal:
        confluent.wait(confluent.admin.delete_records([topic_partition])[topic_partition])
    assert refusal.value.code == ErrorCode.offset_out_of_range
