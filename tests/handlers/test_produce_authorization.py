"""Verdicts on writes: kept for a session, and dropped when they may have changed."""

from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.produce.v13.request import PartitionProduceData
from tests.clients.requests import batch
from tests.controller.test_topics import creation, deletion, topic

from ottla.handlers import create_topics, delete_topics
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds
from ottla.security.acls import AclBinding, Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer import Authorizer
from ottla.security.principal import ANONYMOUS, Principal

PRODUCE = 0
BY_NAME, BY_ID = 12, 13
ENTRY = UUID(int=1)
DENIED = ErrorCode.topic_authorization_failed


@pytest.fixture
def node(start_node):
    node = start_node()
    for name in ("orders", "bills"):
        node.call(create_topics.handle, creation(topic(name, 1, 1)))
    node.use(replace(node.broker, authorizer=Authorizer(node.image.acls)))
    return node


def allow(node, name, entry=ENTRY, permission=Permission.ALLOW):
    literal, write = PatternType.LITERAL, Operation.WRITE
    acl = AclBinding(ResourceType.TOPIC, name, literal, ANONYMOUS, "*", write, permission)
    node.image.acls.add(entry, acl)


def produce(node, *topics):
    """The error code of each topic; topics are names or ids."""
    data = (PartitionProduceData(index=0, records=batch(b"value")),)
    version = BY_ID if isinstance(topics[0], UUID) else BY_NAME
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout=milliseconds(60_000),
        topic_data=tuple(
            TopicProduceData(name="", topic_id=asked_topic, partition_data=data)
            if version == BY_ID
            else TopicProduceData(name=asked_topic, topic_id=None, partition_data=data)
            for asked_topic in topics
        ),
    )
    answered = {
        topic_response.topic_id
        if version == BY_ID
        else topic_response.name: topic_response.partition_responses[0].error_code
        for topic_response in node.ask(PRODUCE, version, request).responses
    }
    return [answered[asked_topic] for asked_topic in topics]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_verdict_is_dropped_with_its_entry(node, by_id):
    orders = node.image.topic_id("orders") if by_id else "orders"
    assert produce(node, orders) == [DENIED]
    allow(node, "orders")
    for _ in range(2):
        assert produce(node, orders) == [ErrorCode.none]
    node.image.acls.remove(ENTRY)
    assert produce(node, orders) == [DENIED]
    allow(node, "orders")
    assert produce(node, orders) == [ErrorCode.none]
    allow(node, "orders", UUID(int=2), Permission.DENY)
    assert produce(node, orders) == [DENIED]


def test_one_topic_that_is_known_to_be_writable_does_not_open_another(node):
    allow(node, "orders")
    for _ in range(2):
        assert produce(node, "orders", "bills") == [ErrorCode.none, DENIED]
    assert produce(node, "orders") == [ErrorCode.none]


def test_a_session_has_the_verdicts_of_its_own_user(node):
    allow(node, "orders")
    assert produce(node, "orders") == [ErrorCode.none]
    node.client.session.principal, node.client.session.access = Principal("User", "mallory"), None
    assert produce(node, "orders") == [DENIED]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_topic_that_is_made_again_is_judged_by_the_entries_of_its_name(node, by_id):
    allow(node, "orders")
    old = node.image.topic_id("orders")
    assert produce(node, old if by_id else "orders") == [ErrorCode.none]
    node.call(delete_topics.handle, deletion({"name": "orders", "topic_id": None}))
    unknown = ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition
    assert produce(node, old if by_id else "orders") == [unknown]
    node.call(create_topics.handle, creation(topic("orders", 1, 1)))
    new = node.image.topic_id("orders")
    assert produce(node, new if by_id else "orders") == [ErrorCode.none]
    node.image.acls.remove(ENTRY)
    assert produce(node, new if by_id else "orders") == [DENIED]
    if by_id:
        assert produce(node, old) == [unknown]
