"""Transactions of one confluent-kafka producer, one at a time."""

import os
import time
import uuid

import cyclopts
from confluent_kafka import Producer

from benchmarks.loads.outcome import report

SECONDS_MAX = 120.0


def main(
    *,
    address: str,
    topic: str,
    records: int = 1,
    value_size: int = 100,
    seconds: float = 3.0,
    warm_seconds: float = 0.5,
) -> None:
    """Each transaction has `records` records and counts once its commit was answered."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": f"benchmark-{uuid.uuid4()}",
            "linger.ms": 0 if records == 1 else 5,
        }
    )
    producer.init_transactions(SECONDS_MAX)
    messages = [{"value": os.urandom(value_size)} for _ in range(records)]
    _run(producer, topic, messages, warm_seconds)
    start = time.perf_counter()
    transactions = _run(producer, topic, messages, seconds)
    elapsed = time.perf_counter() - start
    report(
        transactions_per_second=transactions / elapsed,
        records_per_second=transactions * records / elapsed,
        transactions=transactions,
        seconds=elapsed,
    )


def _run(producer: Producer, topic: str, messages: list[dict[str, bytes]], seconds: float) -> int:
    """Runs for `seconds`, at least one transaction."""
    clock, transactions = time.perf_counter, 0
    end = clock() + seconds
    while True:
        producer.begin_transaction()
        producer.produce_batch(topic, messages, partition=0)
        producer.commit_transaction(SECONDS_MAX)
        transactions += 1
        if clock() >= end:
            return transactions


if __name__ == "__main__":
    cyclopts.run(main)
