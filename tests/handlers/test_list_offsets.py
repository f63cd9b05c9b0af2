import pytest
from kio.schema.list_offsets.v11.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.controller.test_topics import creation, topic

from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.list_offsets import error_response
from ottla.handlers.list_offsets import handle as handle_list_offsets
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4


def asking(*timestamps, name="orders", epoch=-1, partition=0, isolation=0, replica_id=-1):
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation,
        topics=(
            ListOffsetsTopic(
                name=name,
                partitions=tuple(
                    ListOffsetsPartition(
                        partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
                    )
                    for timestamp in timestamps
                ),
            ),
        ),
        timeout=milliseconds(60_000),
    )


@pytest.fixture
def orders(node):
    node.call(handle_create_topics, creation(topic("orders")))
    node.append("orders", 0, 1000, 3000, 2000)
    return node


def ask(node, request):
    (answer,) = node.call(handle_list_offsets, request).topics[0].partitions
    return answer


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (EARLIEST, (0, -1)),
        (EARLIEST_LOCAL, (0, -1)),
        (LATEST, (3, -1)),
        (MAX_TIMESTAMP, (1, 3000)),
        (0, (0, 1000)),
        (1000, (0, 1000)),
        (1001, (1, 3000)),
        (3001, (-1, -1)),
    ],
)
def test_offsets_are_found(orders, timestamp, found):
    answer = ask(orders, asking(timestamp))
    assert answer.error_code is ErrorCode.none
    assert (answer.offset, answer.timestamp) == found
    assert answer.leader_epoch == (-1 if found[0] < 0 else 0)


def test_nothing_past_the_high_watermark_is_found(orders):
    orders.partition("orders", 0).log.high_watermark = 1
    assert ask(orders, asking(LATEST)).offset == 1
    assert ask(orders, asking(1001)).offset == -1
    assert ask(orders, asking(MAX_TIMESTAMP)).offset == -1


def test_a_debugging_consumer_sees_to_the_end_of_the_log(orders):
    orders.partition("orders", 0).log.high_watermark = 1
    assert ask(orders, asking(LATEST, replica_id=-2)).offset == 3
    assert ask(orders, asking(1001, replica_id=-2)).offset == 1


def test_a_timestamp_without_meaning_is_refused_before_the_partition(orders):
    assert ask(orders, asking(-99, partition=7)).error_code is ErrorCode.unsupported_version


def test_an_empty_log_has_no_largest_timestamp(node):
    node.call(handle_create_topics, creation(topic("orders")))
    assert ask(node, asking(MAX_TIMESTAMP)).offset == -1


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asking(LATEST, name="other"), ErrorCode.unknown_topic_or_partition),
        (asking(LATEST, partition=7), ErrorCode.unknown_topic_or_partition),
        (asking(LATEST, epoch=5), ErrorCode.unknown_leader_epoch),
        (asking(-99), ErrorCode.unsupported_version),
    ],
)
def test_what_cannot_be_found_is_refused(orders, request_, code):
    assert ask(orders, request_).error_code is code


def test_a_partition_that_is_named_twice_is_refused(orders):
    response = orders.call(handle_list_offsets, asking(LATEST, EARLIEST))
    assert [partition.error_code for partition in response.topics[0].partitions] == [
        ErrorCode.invalid_request,
        ErrorCode.invalid_request,
    ]


def test_a_disk_that_fails_is_told(orders, caplog):
    (segment,) = orders.log("orders", 0).segments
    orders.disk.fail_reads(segment.path)
    assert ask(orders, asking(1000)).error_code is ErrorCode.kafka_storage_error
    assert "cannot look up offsets of orders-0" in caplog.text


def test_a_refusal_of_the_whole_request_is_told_for_each_partition():
    response = error_response(asking(LATEST), ApiError(ErrorCode.unknown_server_error))
    assert response.topics[0].partitions[0].error_code is ErrorCode.unknown_server_error
