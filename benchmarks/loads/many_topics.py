"""Creates many topics and writes one record to each partition, or checks all of them."""

import time

import cyclopts
from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report

app = cyclopts.App()
TOPICS_PER_REQUEST = 100
SECONDS_MAX = 240.0


@app.command
def write(*, address: str, topics: int, partitions: int) -> None:
    """Creates the topics and writes to every partition."""
    start = time.perf_counter()
    _create(AdminClient({"bootstrap.servers": address}), topics, partitions)
    created = time.perf_counter()
    _write(address, topics, partitions)
    report(create_seconds=created - start, write_seconds=time.perf_counter() - created)


@app.command
def check(*, address: str, topics: int, partitions: int) -> None:
    """Waits until every partition reports exactly one record."""
    admin = AdminClient({"bootstrap.servers": address})
    latest = OffsetSpec.latest()
    wanted = {
        TopicPartition(_name(topic), partition): latest
        for topic in range(topics)
        for partition in range(partitions)
    }
    deadline = time.perf_counter() + SECONDS_MAX
    while wanted and time.perf_counter() < deadline:
        wanted = dict.fromkeys(_unanswered(admin, wanted), latest)
    if wanted:
        raise LoadError(f"{len(wanted)} partitions do not answer")
    report(partitions=topics * partitions)


def _create(admin: AdminClient, topics: int, partitions: int) -> None:
    for first in range(0, topics, TOPICS_PER_REQUEST):
        wanted = range(first, min(first + TOPICS_PER_REQUEST, topics))
        new = [NewTopic(_name(index), partitions, 1) for index in wanted]
        for future in admin.create_topics(new, operation_timeout=60).values():
            future.result(SECONDS_MAX)


def _write(address: str, topics: int, partitions: int) -> None:
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 50})
    _wait_until_listed(producer, topics)
    for topic in range(topics):
        for partition in range(partitions):
            producer.produce(_name(topic), bytes(100), partition=partition, on_delivery=on_delivery)
        producer.poll(0)
    if producer.flush(SECONDS_MAX) or failures:
        raise LoadError(f"records were not acknowledged: {failures[:3]}")


def _wait_until_listed(producer: Producer, topics: int) -> None:
    """A broker may learn of a topic some time after the response to its creation."""
    deadline = time.perf_counter() + SECONDS_MAX
    wanted = {_name(topic) for topic in range(topics)}
    while not wanted <= producer.list_topics(timeout=60).topics.keys():
        if time.perf_counter() > deadline:
            raise LoadError("created topics are not listed")


def _unanswered(
    admin: AdminClient, wanted: dict[TopicPartition, OffsetSpec]
) -> list[TopicPartition]:
    missing = []
    for partition, future in admin.list_offsets(wanted, request_timeout=60).items():
        try:
            offset = future.result(SECONDS_MAX).offset
        except KafkaException:
            missing.append(partition)
            continue
        if offset != 1:
            raise LoadError(f"{partition.topic}-{partition.partition} ends at {offset}, not at 1")
    return missing


def _name(index: int) -> str:
    return f"many-{index}"


if __name__ == "__main__":
    app()
