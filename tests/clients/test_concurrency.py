"""Many clients at once: nothing is lost, duplicated or out of order."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from tests.clients.client import ProduceOptions, Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.requests import metadata
from tests.clients.wire import Wire

PRODUCERS = 4
RECORDS_EACH = 2000


def test_producers_and_a_consumer_on_one_partition(confluent: ConfluentClient, topic: str) -> None:
    def produce(number: int) -> list[int]:
        records = [Sent(key=b"%d" % number, value=b"%d" % index) for index in range(RECORDS_EACH)]
        return confluent.produce(topic, records, ProduceOptions(codec="lz4"))

    with ThreadPoolExecutor(PRODUCERS + 1) as threads:
        reading = threads.submit(confluent.consume, topic, 0, 0, PRODUCERS * RECORDS_EACH)
        offsets = [
            offset for written in threads.map(produce, range(PRODUCERS)) for offset in written
        ]
        received = reading.result()

    assert sorted(offsets) == list(range(PRODUCERS * RECORDS_EACH))
    assert [record.offset for record in received] == list(range(PRODUCERS * RECORDS_EACH))
    by_producer = defaultdict(list)
    for record in received:
        by_producer[record.key].append(int(record.value or b""))
    assert dict(by_producer) == {
        b"%d" % number: list(range(RECORDS_EACH)) for number in range(PRODUCERS)
    }


def test_many_connections(bootstrap: str) -> None:
    connections = [Wire(bootstrap) for _ in range(200)]
    try:
        for connection in connections:
            assert connection.call(metadata()).brokers
    finally:
        for connection in connections:
            connection.__exit__(None, None, None)


def test_many_partitions(confluent: ConfluentClient, bootstrap: str) -> None:
    topic = "many-partitions"
    confluent.create_topic(topic, 100)
    confluent.produce(topic, [Sent(partition=partition) for partition in range(100)])
    for partition in (0, 50, 99):
        assert confluent.offsets(topic, partition) == (0, 1)
    confluent.delete_topic(topic)
