"""The two brokers of FastStream that speak Kafka's protocol."""

from typing import Any


def new_broker(client: str, servers: str) -> Any:
    if client == "aiokafka":
        from faststream.kafka import KafkaBroker

        return KafkaBroker(servers)
    from faststream.confluent import KafkaBroker as ConfluentBroker

    return ConfluentBroker(servers)
