"""What goes in comes out: every client, every codec, every kind of record."""

import pytest
from tests.clients.client import CODECS, Client, ProduceOptions, Received, Sent
from tests.clients.conftest import CLIENTS, CreateTopic, has_codec

TIME_MS = 1_700_000_000_123

RECORDS = [
    Sent(key=b"k", value=b"v", timestamp_ms=TIME_MS),
    Sent(key=None, value=b"no key", timestamp_ms=TIME_MS + 1),
    Sent(key=b"tombstone", value=None, timestamp_ms=TIME_MS + 2),
    Sent(key=b"", value=b"", timestamp_ms=TIME_MS + 3),
    Sent(key=b"\x00\xff", value=bytes(range(256)) * 20, timestamp_ms=TIME_MS - 5),
    Sent(value=b"h", headers=(("a", b"1"), ("a", b""), ("ä", b"\xff")), timestamp_ms=TIME_MS),
]


def expected(records: list[Sent], start: int = 0) -> list[Received]:
    return [
        Received(offset, record.key, record.value, record.headers, record.timestamp_ms or 0)
        for offset, record in enumerate(records, start)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_a_client_reads_what_it_wrote(client: Client, codec: str, topic: str) -> None:
    if not has_codec(client, codec):
        pytest.skip(f"the client has no {codec} here")
    offsets = client.produce(topic, RECORDS, ProduceOptions(codec=codec))
    assert offsets == list(range(len(RECORDS)))
    assert client.consume(topic, 0, 0, len(RECORDS)) == expected(RECORDS)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("reader", CLIENTS)
def test_every_client_reads_what_librdkafka_wrote(
    bootstrap: str, reader: str, codec: str, topic: str
) -> None:
    client = CLIENTS[reader](bootstrap)
    if not has_codec(client, codec):
        pytest.skip(f"the client has no {codec} here")
    CLIENTS["confluent"](bootstrap).produce(topic, RECORDS * 20, ProduceOptions(codec=codec))
    assert client.consume(topic, 0, 0, len(RECORDS) * 20) == expected(RECORDS * 20)


def test_reading_from_the_middle_of_a_batch(client: Client, topic: str) -> None:
    """The broker sends the whole batch; the client skips what was not requested."""
    client.produce(topic, RECORDS)
    assert client.consume(topic, 0, 3, 3) == expected(RECORDS)[3:]


def test_order_over_many_batches(client: Client, topic: str) -> None:
    for number in range(5):
        client.produce(topic, [Sent(value=f"{number}-{index}".encode()) for index in range(200)])
    received = client.consume(topic, 0, 0, 1000)
    assert [record.offset for record in received] == list(range(1000))
    assert [record.value for record in received] == [
        f"{number}-{index}".encode() for number in range(5) for index in range(200)
    ]


def test_partitions_have_offsets_of_their_own(client: Client, create_topic: CreateTopic) -> None:
    topic = create_topic(partitions=3)
    records = [Sent(value=b"%d" % index, partition=index % 3) for index in range(9)]
    client.produce(topic, records)
    for partition in range(3):
        received = client.consume(topic, partition, 0, 3)
        assert [record.offset for record in received] == [0, 1, 2]
        assert {int(record.value or b"") % 3 for record in received} == {partition}


def test_the_broker_sets_the_time_when_the_topic_says_so(
    client: Client, create_topic: CreateTopic
) -> None:
    topic = create_topic(**{"message.timestamp.type": "LogAppendTime"})
    client.produce(topic, [Sent(timestamp_ms=TIME_MS), Sent(timestamp_ms=TIME_MS - 1)])
    times = {record.timestamp_ms for record in client.consume(topic, 0, 0, 2)}
    assert min(times) > TIME_MS


def test_a_read_waits_for_the_record_to_come(client: Client, topic: str) -> None:
    client.produce(topic, [Sent(value=b"first")])
    assert client.offsets(topic, 0) == (0, 1)
    client.produce(topic, [Sent(value=b"second")])
    assert [record.value for record in client.consume(topic, 0, 1, 1)] == [b"second"]
