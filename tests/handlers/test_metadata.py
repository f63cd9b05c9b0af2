from uuid import UUID

import pytest
from kio.schema.metadata.v13.request import MetadataRequestTopic
from kio.schema.metadata.v13.response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.controller.test_topics import creation, topic

from ottla.handlers.metadata import error_response
from ottla.handlers.metadata import handle as handle_metadata
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.times import NO_THROTTLE


def asking(*names, topic_ids=(), create=True):
    return MetadataRequest(
        topics=tuple(
            [MetadataRequestTopic(name=name, topic_id=None) for name in names]
            + [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in topic_ids]
        ),
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=False,
    )


ALL = MetadataRequest(
    topics=None, allow_auto_topic_creation=True, include_topic_authorized_operations=True
)


async def create(node, *topics):
    await node.broker.controller.call(creation(*topics))


def codes(response):
    return {topic.name: topic.error_code for topic in response.topics}


def test_a_missing_topic_is_created_and_described(node):
    response = node.call(handle_metadata, asking("orders"))
    assert response == MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=(MetadataResponseBroker(node_id=1, host="public", port=9092, rack="r1"),),
        cluster_id=node.broker.cluster_id,
        controller_id=1,
        topics=(
            MetadataResponseTopic(
                error_code=ErrorCode.none,
                name="orders",
                topic_id=node.image.topic_id("orders"),
                is_internal=False,
                partitions=(
                    MetadataResponsePartition(
                        error_code=ErrorCode.none,
                        partition_index=0,
                        leader_id=1,
                        leader_epoch=0,
                        replica_nodes=(1,),
                        isr_nodes=(1,),
                        offline_replicas=(),
                    ),
                ),
                topic_authorized_operations=-2147483648,
            ),
        ),
        error_code=ErrorCode.none,
    )


def test_the_listener_of_the_client_decides_the_address(node):
    (broker,) = node.call(handle_metadata, ALL, listener_name="INTERNAL").brokers
    assert (broker.host, broker.port) == ("private", 9093)


def test_a_client_that_does_not_allow_it_creates_nothing(node):
    response = node.call(handle_metadata, asking("orders", create=False))
    assert codes(response) == {"orders": ErrorCode.unknown_topic_or_partition}
    assert list(node.image.topic_names()) == []


def test_a_broker_that_does_not_allow_it_creates_nothing(start_node):
    node = start_node(auto_create_topics_enable="false")
    response = node.call(handle_metadata, asking("orders"))
    assert codes(response) == {"orders": ErrorCode.unknown_topic_or_partition}


def test_bad_names_are_refused_and_the_others_answered(node):
    response = node.call(handle_metadata, asking("bad name", "", "good", "good"))
    assert [(described.name, described.error_code) for described in response.topics] == [
        ("good", ErrorCode.none),
        ("bad name", ErrorCode.invalid_topic_exception),
        ("", ErrorCode.invalid_topic_exception),
    ]
    assert list(node.image.topic_names()) == ["good"]


def test_internal_topics_are_not_created_on_the_way(node):
    response = node.call(handle_metadata, asking("__consumer_offsets", "__cluster_metadata"))
    assert set(codes(response).values()) == {ErrorCode.unknown_topic_or_partition}
    assert response.topics[0].is_internal


def test_a_creation_that_fails_is_told(start_node):
    node = start_node(num_partitions="20000")
    response = node.call(handle_metadata, asking("orders"))
    assert codes(response) == {"orders": ErrorCode.policy_violation}


def test_topics_are_found_by_id(node):
    node.run(create(node, topic("orders")))
    known, unknown = node.image.topic_id("orders"), UUID(int=9)
    response = node.call(handle_metadata, asking(topic_ids=[known, unknown]))
    assert [
        (described.name, described.topic_id, described.error_code) for described in response.topics
    ] == [
        (None, unknown, ErrorCode.unknown_topic_id),
        ("orders", known, ErrorCode.none),
    ]


def test_null_is_all_topics_and_an_empty_list_none(node):
    node.run(create(node, topic("a"), topic("b")))
    assert set(codes(node.call(handle_metadata, ALL))) == {"a", "b"}
    assert codes(node.call(handle_metadata, asking(), api_version=1)) == {}
    assert set(codes(node.call(handle_metadata, asking(), api_version=0))) == {"a", "b"}


def test_a_topic_without_name_and_id_refuses_the_request(node):
    with pytest.raises(ApiError) as caught:
        node.call(handle_metadata, asking(None))
    assert caught.value.code is ErrorCode.invalid_request
    response = error_response(asking("a"), caught.value)
    assert response.error_code is ErrorCode.invalid_request
    assert codes(response) == {"a": ErrorCode.invalid_request}


def test_partitions_whose_leader_the_client_cannot_reach_say_so(node):
    node.run(create(node, topic("orders", assignments={0: (1,)})))
    partition = node.call(handle_metadata, ALL, listener_name="OTHER").topics[0].partitions[0]
    assert partition.error_code is ErrorCode.listener_not_found
    assert (partition.leader_id, partition.replica_nodes) == (-1, (1,))
    assert partition.offline_replicas == (1,)


@pytest.mark.parametrize(("version", "replicas"), [(0, ()), (1, (1,)), (5, (1,))])
def test_until_v5_an_unreachable_leader_is_not_available(node, version, replicas):
    node.run(create(node, topic("orders", assignments={0: (1,)})))
    response = node.call(handle_metadata, ALL, listener_name="OTHER", api_version=version)
    partition = response.topics[0].partitions[0]
    assert partition.error_code is ErrorCode.leader_not_available
    assert (partition.leader_id, partition.replica_nodes) == (-1, replicas)
    assert partition.isr_nodes == replicas


def test_v0_leaves_out_replicas_that_cannot_be_reached(node):
    node.register_another(2)
    node.run(create(node, topic("orders", assignments={0: (1, 2)})))

    def described(version):
        response = node.call(handle_metadata, ALL, api_version=version)
        return response.topics[0].partitions[0]

    old, new = described(0), described(1)
    assert (old.error_code, old.replica_nodes) == (ErrorCode.replica_not_available, (1,))
    assert (new.error_code, new.replica_nodes) == (ErrorCode.none, (1, 2))


def test_fenced_brokers_are_not_listed(node):
    node.register_another(2)
    response = node.call(handle_metadata, ALL, listener_name="INTERNAL")
    assert [broker.node_id for broker in response.brokers] == [1]
