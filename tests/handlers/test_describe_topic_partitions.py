import pytest
from kio.schema.describe_topic_partitions.v0.request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from tests.controller.test_topics import creation, topic

from ottla.controller.records import PartitionChangeRecord
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.describe_topic_partitions import (
    error_response,
)
from ottla.handlers.describe_topic_partitions import (
    handle as handle_describe_topic_partitions,
)
from ottla.protocol.errors import ApiError, ErrorCode


def asking(*names, limit=2000, cursor=None):
    return DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


@pytest.fixture
def topics(node):
    node.call(handle_create_topics, creation(topic("b", 3, 1), topic("a", 2, 1), topic("c", 1, 1)))
    return node


def page(node, request):
    response = node.call(handle_describe_topic_partitions, request)
    cursor = response.next_cursor
    return (
        {
            described.name: [partition.partition_index for partition in described.partitions]
            for described in response.topics
        },
        cursor and (cursor.topic_name, cursor.partition_index),
    )


def test_all_topics_in_the_order_of_their_names(topics):
    assert page(topics, asking()) == ({"a": [0, 1], "b": [0, 1, 2], "c": [0]}, None)


def test_named_topics_and_unknown_ones(topics):
    response = topics.call(handle_describe_topic_partitions, asking("x", "c", "bad name"))
    assert [(described.name, described.error_code) for described in response.topics] == [
        ("bad name", ErrorCode.invalid_topic_exception),
        ("c", ErrorCode.none),
        ("x", ErrorCode.unknown_topic_or_partition),
    ]


def test_pages_follow_each_other(topics):
    assert page(topics, asking(limit=2)) == ({"a": [0, 1]}, ("b", 0))
    assert page(topics, asking(limit=2, cursor=("b", 0))) == ({"b": [0, 1]}, ("b", 2))
    assert page(topics, asking(limit=2, cursor=("b", 2))) == ({"b": [2], "c": [0]}, None)


@pytest.mark.parametrize("request_", [asking("a", limit=0), asking("a", cursor=("a", -1))])
def test_bad_pages_are_refused(topics, request_):
    with pytest.raises(ApiError) as caught:
        page(topics, request_)
    (answer,) = error_response(request_, caught.value).topics
    assert answer.error_code is ErrorCode.invalid_request


def test_replicas_and_who_may_lead_are_told(topics):
    topics.image.replay(
        PartitionChangeRecord(
            partition_id=0,
            topic_id=topics.image.topic_id("c"),
            replicas=(1, 2, 3),
            isr=(),
            leader=-1,
            eligible_leader_replicas=(1, 2),
            last_known_elr=(1,),
        )
    )
    response = topics.call(handle_describe_topic_partitions, asking("c"))
    (partition,) = response.topics[0].partitions
    assert partition.error_code is ErrorCode.none
    assert (partition.leader_id, partition.isr_nodes) == (-1, ())
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((1, 2), (1,))
    assert (partition.replica_nodes, partition.offline_replicas) == ((1, 2, 3), (2, 3))
