from uuid import UUID

import pytest
from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from tests.controller.cluster import Cluster

from ottla.controller.image import TOPIC_RESOURCE
from ottla.controller.records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE, milliseconds

FIRST = UUID(int=1)


def creation(*topics, validate_only=False):
    return CreateTopicsRequest(
        topics=topics, timeout=milliseconds(1000), validate_only=validate_only
    )


def topic(name, partitions=-1, replication=-1, configs=None, assignments=None):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index, replicas in (assignments or {}).items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ),
    )


def config(name, value, source=5):
    return CreatableTopicConfigs(
        name=name, value=value, read_only=False, config_source=source, is_sensitive=False
    )


def create_one(cluster, *args, **kwargs):
    result = cluster.result_of(creation(topic(*args, **kwargs)))
    (answer,) = result.response.topics
    return result, answer


def test_a_topic_is_created_with_exact_records_and_response():
    cluster = Cluster(brokers=2)
    result = cluster.result_of(creation(topic("orders", 2, 2, configs={"retention.ms": " 5 "})))
    assert result.records == (
        TopicRecord(name="orders", topic_id=FIRST),
        ConfigRecord(
            resource_type=TOPIC_RESOURCE, resource_name="orders", name="retention.ms", value="5"
        ),
        PartitionRecord(partition_id=0, topic_id=FIRST, replicas=(1, 2), isr=(1, 2), leader=1),
        PartitionRecord(partition_id=1, topic_id=FIRST, replicas=(2, 1), isr=(2, 1), leader=2),
    )
    assert result.response == CreateTopicsResponse(
        throttle_time=NO_THROTTLE,
        topics=(
            CreatableTopicResult(
                name="orders",
                topic_id=FIRST,
                error_code=ErrorCode.none,
                error_message=None,
                num_partitions=2,
                replication_factor=2,
                configs=(
                    config("retention.ms", "5", source=1),
                    config("cleanup.policy", "delete"),
                    config("min.insync.replicas", "1"),
                    config("unclean.leader.election.enable", "false"),
                ),
            ),
        ),
    )


def test_nothing_changes_before_replay():
    cluster = Cluster()
    cluster.result_of(creation(topic("orders")))
    assert list(cluster.image.topic_names()) == []


def test_counts_of_minus_one_take_the_brokers_defaults():
    cluster = Cluster(brokers=3, num_partitions=4, default_replication_factor=2)
    _, answer = create_one(cluster, "orders")
    assert (answer.num_partitions, answer.replication_factor) == (4, 2)


@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_by_default_there_are_three_replicas_or_as_many_as_brokers(brokers, replicas):
    _, answer = create_one(Cluster(brokers=brokers), "orders")
    assert answer.replication_factor == replicas


def test_validate_only_makes_no_records():
    cluster = Cluster()
    result = cluster.result_of(creation(topic("orders", 3, 1), validate_only=True))
    (answer,) = result.response.topics
    assert result.records == ()
    assert (answer.error_code, answer.num_partitions, answer.topic_id) == (ErrorCode.none, 3, None)


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"name": ""}, ErrorCode.invalid_topic_exception, "empty"),
        ({"name": "a b"}, ErrorCode.invalid_topic_exception, "character"),
        ({"name": "__cluster_metadata"}, ErrorCode.invalid_request, "cannot be created"),
        ({"name": "taken"}, ErrorCode.topic_already_exists, "already exists"),
        ({"name": "dotted_name"}, ErrorCode.invalid_topic_exception, "collides with dotted.name"),
        ({"partitions": 0}, ErrorCode.invalid_partitions, "one or more"),
        ({"partitions": -2}, ErrorCode.invalid_partitions, "one or more"),
        ({"partitions": 2**31 - 1}, ErrorCode.policy_violation, "at most 10000"),
        ({"replication": 0}, ErrorCode.invalid_replication_factor, "one or more"),
        ({"replication": 3}, ErrorCode.invalid_replication_factor, "2 are registered"),
        ({"configs": {"retention.m": "1"}}, ErrorCode.invalid_config, "did you mean retention.ms"),
        ({"configs": {"retention.ms": "x"}}, ErrorCode.invalid_config, "expected long"),
        ({"configs": {"retention.ms": None}}, ErrorCode.invalid_config, "no value"),
        ({"configs": {"cleanup.policy": "burn"}}, ErrorCode.invalid_config, "burn"),
        ({"assignments": {0: (1,)}, "partitions": 1}, ErrorCode.invalid_request, "must be -1"),
        ({"assignments": {1: (1,)}}, ErrorCode.invalid_replica_assignment, "0 to n - 1"),
        ({"assignments": {0: (1, 1)}}, ErrorCode.invalid_replica_assignment, "twice"),
        ({"assignments": {0: (7,)}}, ErrorCode.invalid_replica_assignment, "broker 7"),
        ({"assignments": {0: (1,), 1: (1, 2)}}, ErrorCode.invalid_replica_assignment, "others"),
    ],
)
def test_a_bad_topic_is_refused_and_the_others_are_created(fields, code, message):
    cluster = Cluster(brokers=2)
    cluster.call(creation(topic("taken"), topic("dotted.name")))
    result = cluster.result_of(creation(topic(**{"name": "bad"} | fields), topic("good")))
    bad, good = result.response.topics
    assert bad.error_code is code
    assert message in bad.error_message
    assert bad.topic_id is None
    assert good.error_code is ErrorCode.none
    assert [record.name for record in result.records if isinstance(record, TopicRecord)] == ["good"]


def test_names_that_collide_within_a_request():
    result = Cluster().machine.topics.create_topics(creation(topic("a.b"), topic("a_b")))
    assert [answer.error_code for answer in result.response.topics] == [
        ErrorCode.none,
        ErrorCode.invalid_topic_exception,
    ]


def test_a_name_twice_in_a_request_is_refused_once():
    result = Cluster().machine.topics.create_topics(creation(topic("a"), topic("b"), topic("a")))
    assert [(answer.name, answer.error_code) for answer in result.response.topics] == [
        ("a", ErrorCode.invalid_request),
        ("b", ErrorCode.none),
    ]


def test_the_partitions_of_all_topics_of_a_request_are_limited():
    result = Cluster().machine.topics.create_topics(creation(topic("a", 9_000), topic("b", 9_000)))
    assert [answer.error_code for answer in result.response.topics] == [
        ErrorCode.none,
        ErrorCode.policy_violation,
    ]


def test_a_manual_assignment_is_kept_and_a_fenced_replica_is_not_in_sync():
    cluster = Cluster(brokers=3)
    cluster.heartbeat(2, want_fence=True)
    result, _ = create_one(cluster, "orders", assignments={1: (3, 1), 0: (2, 3)})
    assert result.records[1:] == (
        PartitionRecord(partition_id=0, topic_id=FIRST, replicas=(2, 3), isr=(3,), leader=3),
        PartitionRecord(partition_id=1, topic_id=FIRST, replicas=(3, 1), isr=(3, 1), leader=3),
    )


def deletion(*states):
    return DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(**state) for state in states), timeout=milliseconds(1000)
    )


def test_topics_are_deleted_by_name_and_by_id():
    cluster = Cluster()
    cluster.call(creation(topic("a"), topic("b")))
    result = cluster.result_of(
        deletion({"name": "a", "topic_id": None}, {"name": None, "topic_id": UUID(int=2)})
    )
    assert result.records == (
        RemoveTopicRecord(topic_id=FIRST),
        RemoveTopicRecord(topic_id=UUID(int=2)),
    )
    assert result.response == DeleteTopicsResponse(
        throttle_time=NO_THROTTLE,
        responses=(
            DeletableTopicResult(name="a", topic_id=FIRST, error_code=ErrorCode.none),
            DeletableTopicResult(name="b", topic_id=UUID(int=2), error_code=ErrorCode.none),
        ),
    )
    cluster.apply(result)
    assert list(cluster.image.topic_names()) == []


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({"name": "x", "topic_id": None}, ErrorCode.unknown_topic_or_partition),
        ({"name": None, "topic_id": UUID(int=9)}, ErrorCode.unknown_topic_id),
        ({"name": None, "topic_id": None}, ErrorCode.invalid_request),
        ({"name": "a", "topic_id": FIRST}, ErrorCode.invalid_request),
    ],
)
def test_what_cannot_be_deleted_is_refused(state, code):
    cluster = Cluster()
    cluster.call(creation(topic("a")))
    result = cluster.result_of(deletion(state))
    assert result.records == ()
    assert result.response.responses[0].error_code is code


BY_NAME = {"name": "a", "topic_id": None}
BY_ID = {"name": None, "topic_id": FIRST}


@pytest.mark.parametrize("states", [(BY_NAME, BY_NAME), (BY_ID, BY_ID), (BY_NAME, BY_ID)])
def test_a_topic_that_is_named_twice_is_not_deleted(states):
    cluster = Cluster()
    cluster.call(creation(topic("a"), topic("b")))
    result = cluster.result_of(deletion(*states, {"name": "b", "topic_id": None}))
    *refused, deleted = result.response.responses
    assert {one.error_code for one in refused} == {ErrorCode.invalid_request}
    assert deleted.error_code is ErrorCode.none
    cluster.apply(result)
    assert list(cluster.image.topic_names()) == ["a"]


def test_deletion_can_be_disabled():
    cluster = Cluster(delete_topic_enable="false")
    cluster.call(creation(topic("a")))
    result = cluster.result_of(deletion({"name": "a", "topic_id": None}))
    assert result.response.responses[0].error_code is ErrorCode.topic_deletion_disabled


def addition(name, count, assignments=None, validate_only=False):
    return CreatePartitionsRequest(
        topics=(
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in assignments),
            ),
        ),
        timeout=milliseconds(1000),
        validate_only=validate_only,
    )


@pytest.fixture
def orders():
    cluster = Cluster(brokers=2)
    cluster.call(creation(topic("orders", 1, 2)))
    return cluster


def test_partitions_are_added_with_the_topics_replication_factor(orders):
    result = orders.result_of(addition("orders", 2))
    assert result.records == (
        PartitionRecord(partition_id=1, topic_id=FIRST, replicas=(1, 2), isr=(1, 2), leader=1),
    )
    assert result.response == CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=(CreatePartitionsTopicResult(name="orders", error_code=ErrorCode.none),),
    )


def test_partitions_are_added_where_they_are_assigned(orders):
    result = orders.result_of(addition("orders", 2, assignments=[(2, 1)]))
    assert [record.replicas for record in result.records] == [(2, 1)]


def test_partitions_are_not_added_by_a_validation(orders):
    assert orders.result_of(addition("orders", 2, validate_only=True)).records == ()


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (addition("other", 2), ErrorCode.unknown_topic_or_partition),
        (addition("orders", 1), ErrorCode.invalid_partitions),
        (addition("orders", 0), ErrorCode.invalid_partitions),
        (addition("orders", 2**31 - 1), ErrorCode.policy_violation),
        (addition("orders", 3, [(1, 2)]), ErrorCode.invalid_replica_assignment),
        (addition("orders", 2, [(1,)]), ErrorCode.invalid_replica_assignment),
        (addition("orders", 2, [(1, 9)]), ErrorCode.invalid_replica_assignment),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(orders, request_, code):
    result = orders.result_of(request_)
    assert result.records == ()
    assert result.response.results[0].error_code is code
