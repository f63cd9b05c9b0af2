"""Who writes and who reads in the demonstration of a failover."""

import math
import threading
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.cli.demo.ledger import Ledger

TOPIC = "demo"
PARTITIONS = 6
_RECORD_BYTES = 100
_NUMBER_BYTES = 8
_PADDING = bytes(_RECORD_BYTES - _NUMBER_BYTES)
_SILENT = {"log_level": 0}  # librdkafka would tell of the killed node, over and over.
_TICK_S = 0.01
_POLL_S = 0.1
_FLUSH_S = 0.2


class Writer:
    """Writes at a rate, until it is told to stop; then it waits for what is under way."""

    def __init__(self, bootstrap: str, ledger: Ledger, rate: int) -> None:
        self._ledger = ledger
        self._rate = rate
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                **_SILENT,
            }
        )
        self._stopping = threading.Event()
        self._giving_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-writer", daemon=True)
        self.began_s = math.inf

    def start(self, timeout_s: float) -> None:
        """The clock starts when a record was written to each partition."""
        for number in range(PARTITIONS):
            self._send(number)
        self._producer.flush(timeout_s)
        self.began_s = time.monotonic()
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
            self._giving_up.set()
            self._thread.join()

    def _run(self) -> None:
        ledger, producer = self._ledger, self._producer
        while not self._stopping.wait(_TICK_S):
            due = PARTITIONS + int((time.monotonic() - self.began_s) * self._rate)
            while ledger.sent_count < due and not self._stopping.is_set():
                self._send(ledger.sent_count)
            producer.poll(0)
        while len(producer) and not self._giving_up.is_set():
            producer.flush(_FLUSH_S)

    def _send(self, number: int) -> None:
        def on_delivery(error: Any, message: Any) -> None:
            if error is not None:
                self._ledger.on_failed()
                return
            now_s = time.monotonic() - self.began_s
            self._ledger.on_acknowledged(number, message.latency() * 1000, now_s)

        value = number.to_bytes(_NUMBER_BYTES, "big") + _PADDING
        try:
            partition = number % PARTITIONS
            self._producer.produce(TOPIC, value, partition=partition, on_delivery=on_delivery)
            self._ledger.sent_count += 1
        except BufferError:  # While nobody leads: librdkafka holds 100,000 records.
            self._producer.poll(_POLL_S)


class Reader:
    """Reads all partitions from their beginning."""

    def __init__(self, bootstrap: str, ledger: Ledger) -> None:
        self._ledger = ledger
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "demo",
                "enable.auto.commit": False,
                **_SILENT,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-reader", daemon=True)

    def start(self) -> None:
        self._consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(1000, _POLL_S):
                if message.error() is None:
                    value = message.value() or b""
                    self._ledger.on_read(int.from_bytes(value[:_NUMBER_BYTES], "big"))
