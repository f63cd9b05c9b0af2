"""The response to a producer whose write is refused."""

from dataclasses import replace

import pytest
from kio.schema.produce.v13.request import PartitionProduceData
from tests.clients.requests import batch
from tests.controller.test_topics import creation, topic

from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds

PRODUCE = 0
VERSION = 12


@pytest.fixture
def node(start_node):
    node = start_node()
    node.call(handle_create_topics, creation(topic("orders", 1, 1)))
    return node


def produce(node, sequence):
    records = batch(b"value", producer_id=7, producer_epoch=0, base_sequence=sequence)
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout=milliseconds(60_000),
        topic_data=(
            TopicProduceData(
                name="orders",
                topic_id=None,
                partition_data=(PartitionProduceData(index=0, records=records),),
            ),
        ),
    )
    (result,) = node.ask(PRODUCE, VERSION, request).responses
    return result.partition_responses[0].error_code


def test_a_gap_is_told_by_a_leader_alone(node):
    assert produce(node, 0) is ErrorCode.none
    assert produce(node, 5) is ErrorCode.out_of_order_sequence_number
    # Another broker may lead by now, and have the previous batches.
    node.use(replace(node.broker, is_in_touch=lambda: False))
    assert produce(node, 5) is ErrorCode.not_leader_or_follower
    assert produce(node, 1) is ErrorCode.none


def test_behind_a_batch_that_found_the_disk_full_there_is_no_gap(node):
    assert produce(node, 0) is ErrorCode.none
    node.disk.disk_full()
    assert produce(node, 1) is ErrorCode.kafka_storage_error
    node.disk.disk_full(None)
    assert produce(node, 2) is ErrorCode.kafka_storage_error  # It was in flight with the other.
    assert produce(node, 1) is ErrorCode.none
    assert produce(node, 2) is ErrorCode.none
    assert produce(node, 4) is ErrorCode.out_of_order_sequence_number
