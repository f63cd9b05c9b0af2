"""Transactions as `with` blocks: all records sent in one become visible, or none."""

from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaException

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.client.producer import Producer


class Transaction:
    """See `Producer.transaction`. `abort()` inside the block aborts without an exception."""

    def __init__(self, producer: "Producer", consumer: "Consumer | None" = None) -> None:
        self._producer = producer
        self._consumer = consumer
        self._aborting = False

    def __enter__(self) -> Self:
        self._producer.raw.begin_transaction()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None or self._aborting:
            self._abort()
            return
        try:
            self._commit()
        except KafkaException as failure:
            if failure.args[0].txn_requires_abort():
                self._abort()
            raise

    def abort(self) -> None:
        """Abort at the end of the block."""
        self._aborting = True

    def _commit(self) -> None:
        raw, consumer = self._producer.raw, self._consumer
        if consumer is not None:
            offsets, group = consumer.positions_to_commit(), consumer.group_metadata()
            _retry(lambda: raw.send_offsets_to_transaction(offsets, group))
        _retry(raw.commit_transaction)

    def _abort(self) -> None:
        _retry(self._producer.raw.abort_transaction)
        if self._consumer is not None:
            self._consumer.rewind()


def _retry(operation: Any) -> None:
    """Retries errors that librdkafka calls retriable; it has already waited."""
    while True:
        try:
            operation()
            return
        except KafkaException as failure:
            if not failure.args[0].retriable():
                raise
