"""`ottla produce`: write records to a topic, from arguments or from lines of a file or stdin."""

import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from cyclopts import Parameter

from ottla.cli.assignments import parse_pairs
from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, LOOK_AFTER_S, Connection, describe_error
from ottla.cli.errors import CommandError, ExitCode, UsageError
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson, Flag
from ottla.cli.progress import opened_lines
from ottla.cli.topic_lookup import create_by_default, partition_count

DELIVERY_TIMEOUT_MS = 30_000
POLL_S = 0.5

KeyAndValue = tuple[bytes | None, bytes | None]


Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]


class Delivery:
    """What became of the records, told by librdkafka's delivery reports."""

    def __init__(self) -> None:
        self.offsets: dict[int, list[int]] = defaultdict(list)  # By partition: first and last.
        self.count = 0
        self.failed_count = 0
        self.first_error: KafkaError | None = None

    def report(self, error: KafkaError | None, message: "Message[Any, Any]") -> None:
        if error is not None:
            self.failed_count += 1
            self.first_error = self.first_error or error
            return
        self.count += 1
        offset, span = message.offset(), self.offsets[message.partition() or 0]
        if offset is not None:
            span[:] = [min(span[0], offset), max(span[1], offset)] if span else [offset, offset]


def produce(
    topic: str,
    values: Annotated[list[str] | None, Parameter(name="value")] = None,
    /,
    *,
    file: Path | None = None,
    key: str | None = None,
    key_separator: str | None = None,
    header: list[str] | None = None,
    partition: int | None = None,
    null_marker: str | None = None,
    compression: Compression = "none",
    acks: Acks = "all",
    idempotent: Annotated[bool | None, Parameter(negative="--no-idempotent")] = None,
    create: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Write records to a topic: one per VALUE, else one per line of a file or of stdin.

    Args:
        topic: Name of the topic.
        values: Values of the records.
        file: Write one record per line of this file; - is stdin.
        key: Key of every record.
        key_separator: Text that separates key and value.
        header: Header for every record, as KEY=VALUE; may be repeated.
        partition: Partition to write to, instead of the one that the key determines.
        null_marker: Write values equal to this text as null (tombstones).
        compression: Codec of the batches.
        acks: Which replicas must have the records before the broker answers.
        idempotent: Let the broker drop duplicates of retries; on unless --acks is 0 or 1.
        create: Create the topic if it does not exist.
    """
    if values is not None and file is not None:
        raise UsageError("give either VALUE or --file")
    if key is not None and key_separator is not None:
        raise UsageError("give either --key or --key-separator")
    if idempotent and acks != "all":
        raise UsageError(f"--idempotent needs --acks all, not {acks}")
    headers = [(name, text.encode()) for name, text in parse_pairs("--header", header or [])]
    settings: dict[str, object] = {
        "acks": acks,
        "compression.type": compression,
        "enable.idempotence": acks == "all" if idempotent is None else idempotent,
        "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
        "linger.ms": 5,
        "message.max.bytes": 100_000_000,
    }
    delivery = Delivery()
    options: dict[str, Any] = {"headers": headers, "on_delivery": delivery.report}
    if partition is not None:
        options["partition"] = partition
    with _values(values, file) as lines, connection.errors(topic):
        _find_topic(connection, topic, partition, create=create)
        producer = Producer(connection.client_config(**settings))
        for record_key, value in _records(lines, key, key_separator, null_marker):
            _send(producer, topic, record_key, value, options)
            if delivery.first_error:
                break
        _flush(connection, producer, delivery)
    _raise_failure(connection, topic, delivery)
    _print_outcome(topic, delivery, as_json=as_json)


def _values(values: list[str] | None, file: Path | None) -> AbstractContextManager[Iterator[bytes]]:
    if values is None:
        return opened_lines(file)
    return nullcontext(value.encode() for value in values)


def _find_topic(connection: Connection, topic: str, partition: int | None, *, create: bool) -> None:
    """A person who mistypes a name should not get a topic of that name."""
    with bootstrap_broker(connection) as broker:
        count = partition_count(broker, topic)
        if count is None:
            hint = f"create it with `ottla topics create {topic}`, or add --create"
            if sys.stdin.isatty() and not create:
                raise CommandError(f"there is no topic {topic}; {hint}")
            count = create_by_default(broker, topic)
            if count is None:
                raise CommandError(
                    f"there is no topic {topic}, and the broker creates none by itself "
                    f"(auto.create.topics.enable); create it with `ottla topics create {topic}`"
                )
            print_line(f"created topic {topic}", sys.stderr)
        elif partition is not None and not 0 <= partition < count:
            raise CommandError(f"{topic} has no partition {partition}; it has {count}, from 0")


def _flush(connection: Connection, producer: Producer, delivery: Delivery) -> None:
    """Where nothing was written for a while, look whether the nodes can be reached at all."""
    look_at = time.monotonic() + LOOK_AFTER_S
    while producer.flush(POLL_S):
        if not delivery.count and time.monotonic() > look_at:
            look_at = float("inf")
            connection.check_nodes()


def _records(
    lines: Iterable[bytes], key: str | None, separator: str | None, null_marker: str | None
) -> Iterator[KeyAndValue]:
    fixed_key = None if key is None else key.encode()
    marker = None if null_marker is None else null_marker.encode()
    for number, line in enumerate(lines, 1):
        record_key, value = fixed_key, line
        if separator is not None:
            record_key, found, value = line.partition(separator.encode())
            if not found:
                raise CommandError(f"record {number} has no key separator {separator!r}")
        yield record_key, None if value == marker else value


def _send(
    producer: Producer, topic: str, key: bytes | None, value: bytes | None, options: dict[str, Any]
) -> None:
    """Hand the record to librdkafka, waiting while its queue is full."""
    while True:
        try:
            producer.produce(topic, value, key, **options)
        except BufferError:
            producer.poll(1)
        else:
            producer.poll(0)
            return


def _raise_failure(connection: Connection, topic: str, delivery: Delivery) -> None:
    error = delivery.first_error
    if error is None:
        return
    with connection.errors(topic):
        if not delivery.count:
            raise KafkaException(error)
    raise CommandError(
        f"{delivery.failed_count} records failed after {delivery.count} were written to {topic}: "
        f"{describe_error(error)}",
        ExitCode.FAILED,
    )


def _print_outcome(topic: str, delivery: Delivery, *, as_json: bool) -> None:
    partitions = sorted(delivery.offsets.items())
    acknowledged = all(span for _, span in partitions)  # Not with acks=0: nobody told an offset.
    if as_json:
        spans = [
            {"partition": partition, "first_offset": min(span, default=None)}
            | {"last_offset": max(span, default=None)}
            for partition, span in partitions
        ]
        print_json({"topic": topic, "records": delivery.count, "partitions": spans})
    elif delivery.count == 1 and acknowledged:
        partition, (offset, _) = partitions[0]
        print_line(f"wrote 1 record to {topic}, partition {partition}, offset {offset}")
    else:
        print_line(f"wrote {delivery.count} records to {topic}")
