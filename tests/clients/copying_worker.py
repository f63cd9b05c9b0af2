"""A process that copies one topic to another, a few records in each transaction, until killed.

Usage: python copying_worker.py <bootstrap> <source> <sink>. It exits when a transaction fails; its
parent starts another, which resumes from the last commit.
"""

import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

RECORDS_PER_TRANSACTION = 5
TIMEOUT_S = 120


def copy_for_ever(bootstrap: str, source: str, sink: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{source}-copier",
            "group.instance.id": "the-only-one",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
            "log_level": 2,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"{source}-copier",
            "linger.ms": 0,
            # With the other strategy, a client that lost all brokers waits for a coordinator
            # forever.
            "metadata.recovery.strategy": "none",
            "log_level": 2,
        }
    )
    consumer.subscribe([source])
    producer.init_transactions(TIMEOUT_S)
    while True:
        messages = consumer.consume(RECORDS_PER_TRANSACTION, 1.0)
        for error in filter(None, (message.error() for message in messages)):
            if error.code() == KafkaError._FATAL:  # Fenced by another instance, see KIP-345.
                raise KafkaException(error)
        readable = [message for message in messages if message.error() is None]
        if readable:
            copy(consumer, producer, readable, sink)


def copy(
    consumer: Consumer, producer: Producer, messages: "list[Message[bytes, bytes]]", sink: str
) -> None:
    producer.begin_transaction()
    for message in messages:
        producer.produce(sink, message.value(), partition=message.partition() or 0)
    producer.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), TIMEOUT_S
    )
    producer.commit_transaction(TIMEOUT_S)


if __name__ == "__main__":
    copy_for_ever(*sys.argv[1:])
