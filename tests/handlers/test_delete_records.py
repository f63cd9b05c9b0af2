import pytest
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.controller.test_topics import creation, topic

from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.delete_records import error_response
from ottla.handlers.delete_records import handle as handle_delete_records
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds


def asking(offset, name="orders"):
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=name, partitions=(partition,)),),
        timeout=milliseconds(60_000),
    )


@pytest.fixture
def orders(node):
    node.call(handle_create_topics, creation(topic("orders")))
    node.append("orders", 0, 1000, 3000, 2000)
    return node


def ask(node, request):
    (answer,) = node.call(handle_delete_records, request).topics[0].partitions
    return answer.error_code, answer.low_watermark


def test_the_log_starts_at_the_offset(orders):
    assert ask(orders, asking(2)) == (ErrorCode.none, 2)
    assert orders.partition("orders", 0).log.log_start_offset == 2


def test_minus_one_is_the_high_watermark(orders):
    orders.partition("orders", 0).log.high_watermark = 1
    assert ask(orders, asking(-1)) == (ErrorCode.none, 1)


def test_an_offset_before_the_start_changes_nothing(orders):
    ask(orders, asking(2))
    assert ask(orders, asking(1)) == (ErrorCode.none, 2)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asking(4), ErrorCode.offset_out_of_range),
        (asking(-2), ErrorCode.offset_out_of_range),
        (asking(1, name="other"), ErrorCode.unknown_topic_or_partition),
    ],
)
def test_what_cannot_be_deleted_is_refused(orders, request_, code):
    assert ask(orders, request_) == (code, -1)


def test_a_leadership_that_ends_meanwhile_is_told(orders, monkeypatch):
    """The request runs in a thread."""
    partition = orders.partition("orders", 0)

    def resign(*_):
        partition.resign(ApiError(ErrorCode.not_leader_or_follower))

    monkeypatch.setattr("ottla.handlers.delete_records._delete_before", resign)
    assert ask(orders, asking(2)) == (ErrorCode.not_leader_or_follower, -1)


def test_a_refusal_of_the_whole_request_is_told_for_each_partition():
    response = error_response(asking(1), ApiError(ErrorCode.unknown_server_error))
    assert response.topics[0].partitions[0].error_code is ErrorCode.unknown_server_error
