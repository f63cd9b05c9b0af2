"""Records to the brokers, through librdkafka, which batches them in threads of its own.

The queue of what is not acknowledged is bounded in records and bytes; TooBusy where it is full.
Delivery reports are collected by a timer of the loop while any are due: many at once, and no
thread that competes for the interpreter.
"""

import asyncio
import contextlib
import enum
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.cluster import Topic
from ottla.client.wire.errors import BrokerError
from ottla.gateway.core.errors import TooBusy
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.settings import GatewaySettings

DELIVER_AT: Final = "ottla-deliver-at"  # Milliseconds since 1970, ASCII decimal.

_ANY_PARTITION: Final = -1
_POLL_S: Final = 0.001
_LINGER_MS: Final = 4
_CREATION_TRIES: Final = 6
_CREATION_PAUSE_S: Final = 0.25
_FULL_PAUSE_S: Final = 0.005


class Acks(enum.StrEnum):
    ALL = "all"
    LEADER = "1"
    NONE = "0"


class Published(NamedTuple):
    partition: int
    offset: int | None  # None without acknowledgement.
    timestamp_ms: int


Report = Callable[[Published | KafkaException], None]
_NOT_YET: Final = Exception("no report yet")


class Publisher:
    def __init__(self, settings: GatewaySettings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._loop = asyncio.get_running_loop()
        self._producers: dict[Acks, Producer] = {}
        self._due = 0  # Reports that are to come.
        self._quiet = asyncio.Event()  # Nothing is due, and no timer runs.
        self._quiet.set()

    async def topic(self, name: str) -> Topic:
        """To be asked before publishing; makes the topic if it is missing and the cluster does so.

        UNKNOWN_TOPIC_OR_PARTITION if there is none then.
        """
        validate_topic(name)
        for attempt in range(1, _CREATION_TRIES + 1):
            try:
                return await self._cluster.topic_to_write(name)
            except BrokerError as error:
                if not error.may_pass or attempt == _CREATION_TRIES:
                    raise
            await asyncio.sleep(_CREATION_PAUSE_S)
        raise AssertionError

    def publish(
        self, topic: str, record: NewRecord, acks: Acks = Acks.ALL
    ) -> "asyncio.Future[Published]":
        """Its report; fails with KafkaException. TooBusy if the queue is full."""
        future: asyncio.Future[Published] = self._loop.create_future()

        def report(outcome: Published | KafkaException) -> None:
            if future.done():  # Nobody waits any more.
                return
            if isinstance(outcome, Published):
                future.set_result(outcome)
            else:
                future.set_exception(outcome)

        self._produce(topic, record, acks, report)
        return future

    def _produce(self, topic: str, record: NewRecord, acks: Acks, report: Report) -> None:
        value, key, partition, headers, timestamp_ms = record
        options: dict[str, Any] = {}
        if headers:
            options["headers"] = list(headers)
        if timestamp_ms is not None:
            options["timestamp"] = timestamp_ms
        producer = self._producers.get(acks) or self._start(acks)
        try:
            producer.produce(
                topic,
                value,
                key,
                _ANY_PARTITION if partition is None else partition,
                _Delivery(self, report),
                **options,
            )
        except BufferError:
            raise TooBusy("the queue of records that wait for the brokers is full") from None
        self._due += 1
        if self._quiet.is_set():
            self._quiet.clear()
            self._loop.call_later(_POLL_S, self._collect)

    async def publish_all(
        self, topic: str, records: Sequence[NewRecord], acks: Acks = Acks.ALL
    ) -> list[Published | Exception]:
        """One outcome for each; those that the queue has no room for are TooBusy."""
        outcomes: list[Published | Exception] = [_NOT_YET] * len(records)
        missing = len(records)
        all_there: asyncio.Future[None] = self._loop.create_future()

        def report(index: int, outcome: Published | Exception) -> None:
            nonlocal missing
            outcomes[index] = outcome
            missing -= 1
            if not missing and not all_there.done():
                all_there.set_result(None)

        for index, record in enumerate(records):
            try:
                self._produce(topic, record, acks, partial(report, index))
            except (TooBusy, KafkaException) as error:
                report(index, error)
        if records:
            await all_there
        return outcomes

    async def publish_patiently(
        self, topic: str, record: NewRecord, acks: Acks = Acks.ALL
    ) -> "asyncio.Future[Published]":
        """Waits for room in the queue, for those who can be made to wait."""
        while True:
            with contextlib.suppress(TooBusy):
                return self.publish(topic, record, acks)
            await asyncio.sleep(_FULL_PAUSE_S)

    async def close(self) -> None:
        """When everything is acknowledged, or has failed."""
        await self._quiet.wait()
        self._producers.clear()

    def reported(self) -> None:
        self._due -= 1

    def _collect(self) -> None:
        for producer in self._producers.values():
            producer.poll(0)
        if self._due:
            self._loop.call_later(_POLL_S, self._collect)
        else:
            self._quiet.set()

    def _start(self, acks: Acks) -> Producer:
        settings = self._settings
        producer = Producer(
            {
                "bootstrap.servers": settings.bootstrap_servers,
                "client.id": "ottla-gateway",
                "acks": acks,
                "enable.idempotence": acks is Acks.ALL,
                "partitioner": "murmur2_random",
                "linger.ms": _LINGER_MS,
                "message.timeout.ms": settings.publish_timeout_ms,
                "message.max.bytes": settings.body_bytes_max + 1024,
                "queue.buffering.max.messages": settings.queue_records_max,
                "queue.buffering.max.kbytes": settings.queue_bytes_max // 1024,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 0,
                "error_cb": _ignore,
            }
        )
        self._producers[acks] = producer
        return producer


class _Delivery:
    """What librdkafka calls with the fate of one record, from `poll`, in the loop's thread."""

    __slots__ = ("_publisher", "_report")

    def __init__(self, publisher: Publisher, report: Report) -> None:
        self._publisher = publisher
        self._report = report

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        self._publisher.reported()
        if error is not None:
            self._report(KafkaException(error))
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        acknowledged = offset if offset is not None and offset >= 0 else None
        self._report(Published(partition, acknowledged, message.timestamp()[1]))


def _ignore(_: KafkaError) -> None:
    """Every record reports its own failure."""
