import asyncio
import dataclasses
from uuid import UUID

import pytest
from tests.client.wire.batches import batch
from tests.controller.test_topics import creation, topic
from tests.replication.roles import leader_of

from ottla.handlers.broker import RequestContext
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.import_records import error_response, handle
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.import_records import (
    ImportedPartition,
    ImportedTopic,
    ImportRecordsRequest,
)
from ottla.protocol.times import milliseconds
from ottla.security.acl_index import AclIndex
from ottla.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ottla.security.authorizer import Authorizer
from ottla.security.principal import parse_principal

VERY_SLOW = 10_000.0  # A sync takes about ten seconds of simulated time.


@pytest.fixture
def request_(node):
    node.call(handle_create_topics, creation(topic("orders")))
    partition = ImportedPartition(partition_index=0, log_start_offset=0, next_offset=0, records=b"")
    topics = (ImportedTopic(topic_id=node.image.topic_id("orders"), partitions=(partition,)),)
    return ImportRecordsRequest(timeout=milliseconds(1000), topics=topics)


def code_of(response):
    return response.topics[0].partitions[0].error_code


def answer_to(node, request, kind, name, operation):
    """The response to alice, who has only this access."""
    alice = parse_principal("User:alice")
    acls = AclIndex()
    acls.add(
        UUID(int=1),
        AclBinding(kind, name, PatternType.LITERAL, alice, "*", operation, Permission.ALLOW),
    )
    access = Authorizer(acls).access(alice, "10.0.0.1")
    context = RequestContext(0, "client", "PLAINTEXT", node.client.session, access)
    return node.run(handle(node.broker, context, request))


def test_the_cluster_has_to_be_alterable(node, request_):
    with pytest.raises(ApiError) as refused:
        answer_to(node, request_, ResourceType.TOPIC, "orders", Operation.ALL)
    assert refused.value.code is ErrorCode.cluster_authorization_failed
    allowed = answer_to(node, request_, ResourceType.CLUSTER, CLUSTER_NAME, Operation.ALTER)
    assert code_of(allowed) is ErrorCode.policy_violation  # The topic is not open.


def test_a_refusal_of_the_whole_request_is_told_for_each_partition(request_):
    response = error_response(request_, ApiError(ErrorCode.unknown_server_error))
    assert code_of(response) is ErrorCode.unknown_server_error


def test_the_end_of_a_log_is_answered_when_all_up_to_there_is_committed(start_node):
    """A restarted importer considers it done, and may have nothing more to write."""
    node = start_node()
    node.call(handle_create_topics, creation(topic("orders", partitions=1)))
    partition = node.partition("orders", 0)
    partition.log.config = dataclasses.replace(partition.log.config, record_import="open")
    session = node.client.session
    node.simulated.host.disk_slowness = VERY_SLOW
    asked = node.process.create_task(ask_for_the_end(node, partition, session))
    with pytest.raises(TimeoutError):
        node.run(asyncio.wait_for(asyncio.shield(asked), 0.2))
    assert partition.log.high_watermark == 0
    (result,) = node.run(asked).topics[0].partitions
    assert result.error_code is ErrorCode.offset_out_of_range
    assert result.log_end_offset == partition.log.high_watermark == 1


async def ask_for_the_end(node, partition, session):
    leader_of(partition).append_imported(memoryview(bytearray(batch(b"v"))), 0)
    asked = ImportedPartition(partition_index=0, log_start_offset=0, next_offset=0, records=b"")
    topics = (ImportedTopic(topic_id=node.image.topic_id("orders"), partitions=(asked,)),)
    request = ImportRecordsRequest(timeout=milliseconds(60_000), topics=topics)
    context = RequestContext(0, "client", "PLAINTEXT", session)
    return await handle(node.broker, context, request)
