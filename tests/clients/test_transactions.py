"""Transactions are not there yet: who asks for one is told so, and need not wait for a timeout."""

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S
from tests.clients.confluent_client import ConfluentClient


def test_librdkafka_is_told_at_once(own_broker: BrokerProcess, confluent: ConfluentClient) -> None:
    producer = Producer(confluent.config | {"transactional.id": "nobody"})
    with pytest.raises(KafkaException) as failure:
        producer.init_transactions(TIMEOUT_S)
    error = failure.value.args[0]
    assert error.code() != KafkaError._TIMED_OUT
    assert not error.retriable()


def test_kafka_python_is_told_at_once(own_broker: BrokerProcess) -> None:
    producer = KafkaProducer(
        bootstrap_servers=own_broker.bootstrap,
        transactional_id="nobody",
        max_block_ms=TIMEOUT_S * 1000,
    )
    try:
        with pytest.raises(KafkaPythonError) as failure:
            producer.init_transactions()
        assert "timeout" not in type(failure.value).__name__.lower()
    finally:
        producer.close(timeout=0)
