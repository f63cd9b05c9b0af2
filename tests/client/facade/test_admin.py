from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from ottla.client import Admin, Consumer, OffsetResetPolicy, Producer
from ottla.client.aio import Admin as AsyncAdmin
from ottla.testing import EmbeddedBroker

ANY_RESOURCE: tuple[Any, Any, Any] = (ResourceType.ANY, None, ResourcePatternType.ANY)


def test_topics_and_configs(broker: EmbeddedBroker, servers: str) -> None:
    admin = Admin(bootstrap_servers=servers)
    name = broker.topic_prefix + "orders"
    admin.create_topic(name, 2, config={"retention.ms": "1000"})
    assert name in admin.topics()
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topic(name)
    admin.create_topic(name, if_not_exists=True)
    assert admin.partitions(name)[1].leader == 1
    assert admin.configs(topic=name)["retention.ms"] == "1000"
    admin.set_configs({"retention.ms": "2000", "max.message.bytes": "5000"}, topic=name)
    assert admin.configs(topic=name)["retention.ms"] == "2000"
    admin.set_configs({"max.message.bytes": None}, topic=name)
    assert admin.configs(topic=name)["max.message.bytes"] != "5000"
    admin.add_partitions(name, 3)
    assert len(admin.partitions(name)) == 3
    admin.delete_topic(name)
    admin.delete_topic(name, if_exists=True)
    with pytest.raises(TypeError, match="name one thing"):
        admin.configs(topic=name, broker="1")


def test_groups_and_lag(broker: EmbeddedBroker, servers: str) -> None:
    admin = Admin(bootstrap_servers=servers)
    topic = broker.topic("orders")
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(10):
            producer.send(topic, number)
    with Consumer(
        bootstrap_servers=servers,
        group_id=topic,
        auto_offset_reset=OffsetResetPolicy.EARLIEST,
        enable_auto_commit=False,
    ).subscribe(topic) as consumer:
        while not consumer.poll():
            pass
        consumer.commit({(topic, 0): 4})
        assert topic in admin.groups()
        assert admin.group(topic).members == ("ottla",)
    assert admin.offsets(topic) == {(topic, 0): 4}
    assert admin.lag(topic) == {(topic, 0): 6}
    assert admin.end_offsets(topic) == {(topic, 0): 10}
    admin.set_offsets(topic, {(topic, 0): 9})
    assert admin.lag(topic) == {(topic, 0): 1}
    admin.delete_group(topic)
    assert topic not in admin.groups()


def test_users_and_rights() -> None:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.plain.without.tls": True,
    }
    anybody: tuple[Any, Any] = (None, None)  # Any principal, any host.
    every = AclBindingFilter(*ANY_RESOURCE, *anybody, AclOperation.ANY, AclPermissionType.ANY)
    with EmbeddedBroker(config=config) as broker:
        admin = Admin(bootstrap_servers=broker.bootstrap_servers)
        orders, bills = broker.topic("orders"), broker.topic("bills")
        admin.set_user("anna", "secret")
        assert admin.users() == ["anna"]
        may_write = AclBinding(
            ResourceType.TOPIC,
            orders,
            ResourcePatternType.LITERAL,
            "User:anna",
            "*",
            AclOperation.WRITE,
            AclPermissionType.ALLOW,
        )
        admin.add_acls([may_write])
        assert admin.acls(every) == [may_write]
        with Producer(
            bootstrap_servers=broker.servers_of("SASL_PLAINTEXT"),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_username="anna",
            sasl_password="secret",
        ) as producer:
            assert producer.send(orders, "lamp").result().offset == 0
            with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
                producer.send(bills, "lamp").result()
        assert admin.delete_acls(every) == [may_write]
        assert admin.acls(every) == []
        admin.delete_user("anna")
        assert admin.users() == []
        with pytest.raises(KafkaException, match="RESOURCE_NOT_FOUND"):
            admin.delete_user("anna")


def test_the_cluster(servers: str) -> None:
    cluster = Admin(bootstrap_servers=servers).cluster()
    assert [node.node_id for node in cluster.nodes] == [1]
    assert cluster.controller_id == 1


async def _look(servers: str, name: str) -> list[str]:
    admin = AsyncAdmin(bootstrap_servers=servers)
    await admin.create_topic(name, 2)
    return await admin.topics()


def test_the_same_from_asyncio(broker: EmbeddedBroker, servers: str) -> None:
    import asyncio

    name = broker.topic_prefix + "orders"
    assert name in asyncio.run(_look(servers, name))
