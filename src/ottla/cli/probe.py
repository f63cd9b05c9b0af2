"""`ottla probe`: send records through every broker and back, and report loss and latency.

Each broker has a topic of its own, `ottla-probe-ID`, with one partition that it should lead. A
record is written with acks=all and read back from there. What is not back in time is lost, what
takes longer than `--late-ms` is late.
"""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, TIMEOUT_S, Connection, interruptible
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import Row, print_json, print_rows
from ottla.cli.parameters import AsJson, validate_positive

PREFIX: Final = "ottla-probe-"
REPLICAS_MAX: Final = 3
TOPIC_CONFIG: Final = {"retention.ms": "3600000", "segment.bytes": "1048576"}
COLUMNS: Final = ("broker", "sent", "lost", "late", "median_ms", "max_ms", "problem")

_POLL_S: Final = 0.005


@dataclass
class Tally:
    """How the records of one broker fare."""

    broker: int
    sent: int = 0
    lost: int = 0
    late: int = 0
    times_ms: list[float] = field(default_factory=list)
    problem: str | None = None  # The last one.

    @property
    def topic(self) -> str:
        return f"{PREFIX}{self.broker}"

    def on_back(self, took_ms: float, late_ms: float) -> None:
        self.times_ms.append(took_ms)
        if took_ms > late_ms:
            self.late += 1
            self.problem = f"took {took_ms:.0f} ms"

    def lose(self, problem: str) -> None:
        self.lost += 1
        self.problem = problem

    def row(self) -> Row:
        times = [round(each, 1) for each in self.times_ms]
        return {
            "broker": self.broker,
            "sent": self.sent,
            "lost": self.lost,
            "late": self.late,
            "median_ms": round(median(times), 1) if times else None,
            "max_ms": max(times, default=None),
            "problem": self.problem,
        }


def probe(
    *,
    count: int = 5,
    interval_ms: int = 1000,
    late_ms: int = 1000,
    timeout_ms: int = 5000,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> int:
    """Send records through every broker and back. Fails if one is lost or late or a broker is down.

    Args:
        count: How many records to send through each broker; 0 sends until ctrl-c.
        interval_ms: Milliseconds between two records.
        late_ms: Milliseconds after which a record counts as late.
        timeout_ms: Milliseconds after which a missing record counts as lost.
    """
    if count < 0:
        raise UsageError(f"--count {count} is less than 0")
    validate_positive("--interval-ms", interval_ms)
    validate_positive("--timeout-ms", timeout_ms)
    with connection.errors(), interruptible():
        run = _Probe(connection, late_ms, timeout_ms)
        try:
            for _ in _rounds(count, interval_ms / 1000):
                run.round()
        except KeyboardInterrupt:
            if count:
                raise
        finally:
            run.close()
    tallies = run.tallies + _absent(connection, {tally.broker for tally in run.tallies})
    passed = all(tally.sent and not tally.lost and not tally.late for tally in tallies)
    if as_json:
        print_json({"passed": passed, "brokers": [tally.row() for tally in tallies]})
    else:
        print_rows(COLUMNS, [tally.row() for tally in tallies])
    return 0 if passed else 1


def _absent(connection: Connection, probed: set[int]) -> list[Tally]:
    """Brokers that are registered, and that clients were not told of."""
    try:
        with bootstrap_broker(connection, looks=False) as broker:
            nodes = broker.nodes()
    except CommandError:
        return []  # Not everybody may ask.
    absent = [node.node_id for node in nodes if node.fenced and node.node_id not in probed]
    return [Tally(broker, problem="down or cut off") for broker in sorted(absent)]


def _rounds(count: int, interval_s: float) -> Iterator[int]:
    number, begun_s = 0, time.monotonic()
    while True:
        yield number
        number += 1
        if number == count:
            return
        time.sleep(max(0.0, begun_s + number * interval_s - time.monotonic()))


class _Probe:
    def __init__(self, connection: Connection, late_ms: int, timeout_ms: int) -> None:
        self._late_ms = late_ms
        self._timeout_ms = timeout_ms
        self._connection = connection
        self._run_id = uuid.uuid4().hex
        self._number = 0
        self._admin = connection.admin()
        metadata = self._metadata()
        if not metadata.brokers:
            raise CommandError("the cluster has no brokers")
        self.tallies = [Tally(broker) for broker in sorted(metadata.brokers)]
        _create_topics(connection, self._admin, self.tallies, metadata)
        self._producer = Producer(
            connection.client_config(
                **{"linger.ms": 0, "acks": "all", "message.timeout.ms": timeout_ms}
            )
        )
        self._consumer = self._make_consumer()

    def close(self) -> None:
        self._producer.purge()
        self._consumer.close()

    def _make_consumer(self) -> Consumer:
        consumer = Consumer(
            self._connection.client_config(
                **{"group.id": PREFIX + self._run_id, "enable.auto.commit": False}
            )
        )
        ends = [TopicPartition(tally.topic, 0) for tally in self.tallies]
        for end in ends:
            ask = partial(consumer.get_watermark_offsets, end)
            _, end.offset = self._connection.patiently(ask)
        consumer.assign(ends)
        return consumer

    def _metadata(self) -> ClusterMetadata:
        return self._connection.patiently(self._admin.list_topics)

    def round(self) -> None:
        """One record through each broker."""
        self._number += 1
        metadata = self._metadata()
        value = f"{self._run_id} {self._number}".encode()
        waiting: dict[str, Tally] = {}
        for tally in self.tallies:
            tally.sent += 1
            if (problem := _misplaced(metadata, tally)) is not None:
                tally.lose(problem)
            else:
                waiting[tally.topic] = tally
                note = partial(_note, tally)
                self._producer.produce(tally.topic, value, partition=0, on_delivery=note)
        self._await(waiting, value)

    def _await(self, waiting: dict[str, Tally], value: bytes) -> None:
        begun_s = time.monotonic()
        while waiting and time.monotonic() - begun_s < self._timeout_ms / 1000:
            self._producer.poll(0)
            message = self._consumer.poll(_POLL_S)
            if message is not None and message.error() is None and message.value() == value:
                tally = waiting.pop(str(message.topic()), None)
                if tally is not None:
                    tally.on_back((time.monotonic() - begun_s) * 1000, self._late_ms)
        for tally in waiting.values():
            tally.lose(tally.problem or f"not back after {self._timeout_ms} ms")


def _note(tally: Tally, error: KafkaError | None, _: Message) -> None:
    tally.problem = None if error is None else f"not written: {error.str()}"


def _misplaced(metadata: ClusterMetadata, tally: Tally) -> str | None:
    topic = metadata.topics.get(tally.topic)
    leader = -1 if topic is None or 0 not in topic.partitions else topic.partitions[0].leader
    if leader == tally.broker:
        return None
    return f"broker {leader} leads its partition" if leader >= 0 else "its partition has no leader"


def _create_topics(
    connection: Connection, admin: AdminClient, tallies: list[Tally], metadata: ClusterMetadata
) -> None:
    """Those that are missing. The first replica is the broker's, which leads by preference."""
    missing = [tally for tally in tallies if tally.topic not in metadata.topics]
    if not missing:
        return
    brokers = [tally.broker for tally in tallies]
    topics = []
    for tally in missing:
        start = brokers.index(tally.broker)
        replicas = (brokers[start:] + brokers[:start])[:REPLICAS_MAX]
        assigned = [replicas]  # Of one partition.
        topics.append(NewTopic(tally.topic, 1, replica_assignment=assigned, config=TOPIC_CONFIG))
    futures = admin.create_topics(topics, operation_timeout=TIMEOUT_S)
    for future in futures.values():
        connection.succeeds(future, unless=KafkaError.TOPIC_ALREADY_EXISTS)
