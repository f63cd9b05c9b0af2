"""Write records."""

import datetime as dt
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import confluent_kafka

from ottla.client.config import ProducerConfig, WhenFull
from ottla.client.delay import GivenHeaders, with_delay
from ottla.client.delivery import Delivery, delivery_type
from ottla.client.errors import BufferFull, NotFlushed, NotStarted
from ottla.client.partition_counts import PartitionCounts
from ottla.client.partitioners import Partition
from ottla.client.poller import Poller

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.client.transactions import Transaction

ANY_PARTITION = -1
NOW = 0  # librdkafka stamps the record.
SENDS_PER_POLL = 100
_FULL_PAUSE_S = 0.005
_METADATA_TIMEOUT_S = 30.0


class Producer:
    """`Producer(config)` or `Producer(bootstrap_servers=..., linger_ms=...)`.

    Thread-safe. A thread of the producer polls for deliveries.
    """

    def __init__(self, config: ProducerConfig | None = None, **settings: Any) -> None:
        self.config = ProducerConfig.of(config, settings)
        self._producer: confluent_kafka.Producer | None = None
        self._poller: Poller | None = None
        self._unpolled_count = 0
        self._new_delivery = Delivery
        self._produce: Callable[..., None]  # Set by `start`.
        self._is_plain = False  # Started, and librdkafka chooses partitions.
        self._serialize = self.config.value_serializer
        self._serialize_key = self.config.key_serializer
        partitioner = self.config.partitioner
        self._choose = None if isinstance(partitioner, Partition) else partitioner
        self._partition_counts = PartitionCounts(self._ask_partition_count)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, *, polls: bool = True) -> Self:
        """Connect. With a `transactional_id`, end the open transaction of an earlier producer.

        Without `polls`, the caller must poll `raw` for deliveries.
        """
        if self._producer is not None:
            return self
        producer = confluent_kafka.Producer(self.config.settings())
        if self.config.transactional_id is not None:
            producer.init_transactions()
        self._producer = producer
        self._produce, self._is_plain = producer.produce, self._choose is None
        if polls:
            self._poller = poller = Poller(producer)
            self._new_delivery = delivery_type(poller.hurry)
        return self

    @property
    def raw(self) -> confluent_kafka.Producer:
        """The confluent-kafka producer."""
        if self._producer is None:
            raise NotStarted("the producer is not started; call start() or use it in a with block")
        return self._producer

    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        partition: int | None = None,
        headers: GivenHeaders | None = None,
        timestamp: int | None = None,
        deliver_after: float | dt.timedelta | None = None,
    ) -> Delivery:
        """Buffer a record and return a future for its partition and offset.

        `timestamp` is in milliseconds since 1970. `deliver_after`, in seconds, delays delivery to
        share groups, in topics with delivery.delay.enable.
        """
        delivery = self._new_delivery()
        try:
            if (
                self._is_plain
                and partition is None
                and headers is None
                and timestamp is None
                and deliver_after is None
                and value.__class__ is bytes
                and (key is None or key.__class__ is bytes)
            ):
                self._produce(topic, value, key, ANY_PARTITION, delivery)
            else:
                self.send_now(
                    delivery, topic, value, key, partition, headers, timestamp, deliver_after
                )
        except BufferError:
            self._send_when_there_is_room(
                delivery, topic, value, key, partition, headers, timestamp, deliver_after
            )
        self._unpolled_count += 1
        if self._unpolled_count >= SENDS_PER_POLL:
            self._unpolled_count = 0
            if self._poller is not None:
                self._poller.poll()
        return delivery

    def send_now(
        self,
        on_delivery: Callable[[Any, Any], None],
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: GivenHeaders | None,
        timestamp: int | None,
        deliver_after: float | dt.timedelta | None,
    ) -> None:
        """Like `send`, but raises BufferError if the buffer is full.

        `on_delivery` is called with an error or None, and with the raw message.
        """
        producer = self._producer
        if producer is None:
            producer = self.raw
        if partition is None:
            partition = ANY_PARTITION if self._choose is None else self._chosen(topic, key)
        if value.__class__ is not bytes and value is not None:
            value = self._serialize(value)
        if key is not None and key.__class__ is not bytes:
            key = self._serialize_key(key)
        if deliver_after is not None:
            headers = with_delay(headers, deliver_after)
        if headers is None and timestamp is None:
            producer.produce(topic, value, key, partition, on_delivery)
        else:
            moment = NOW if timestamp is None else timestamp
            producer.produce(topic, value, key, partition, on_delivery, None, moment, headers)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until every record is delivered or has failed; NotFlushed after the timeout."""
        left = self.raw.flush(-1 if timeout is None else timeout)
        if left:
            raise NotFlushed(f"{left} records are not delivered after {timeout:g} s")

    def close(self, timeout: float | None = None) -> None:
        """Flush and disconnect."""
        producer = self._producer
        if producer is None:
            return
        try:
            self.flush(timeout)
        finally:
            if self._poller is not None:
                self._poller.stop()
            self._producer = self._poller = None
            self._is_plain = False
            producer.close()

    def transaction(self, consumer: "Consumer | None" = None) -> "Transaction":
        """`with producer.transaction(): ...` commits at the end, or aborts if the block raises.

        With a consumer, the messages it handed out count as read only if the transaction commits;
        after an abort they are read again.
        """
        from ottla.client.transactions import Transaction

        return Transaction(self, consumer)

    def _chosen(self, topic: str, key: Any) -> int:
        assert self._choose is not None
        return self._choose(topic, key, self._partition_counts.of(topic))

    def _ask_partition_count(self, topic: str) -> int:
        found = self.raw.list_topics(topic, _METADATA_TIMEOUT_S).topics[topic]
        if found.error is not None:
            raise confluent_kafka.KafkaException(found.error)
        return len(found.partitions)

    def _send_when_there_is_room(self, *arguments: Any) -> None:
        if self.config.when_full is WhenFull.RAISE:
            raise BufferFull("the buffer is full") from None
        deadline = time.monotonic() + self.config.max_block_ms / 1000
        while True:
            if self._poller is not None:
                self._poller.poll()
            time.sleep(_FULL_PAUSE_S)
            try:
                self.send_now(*arguments)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    text = f"the buffer is full for {self.config.max_block_ms} ms"
                    raise BufferFull(text) from None
