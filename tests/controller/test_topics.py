from collections.abc import Mapping, Sequence
from typing import Any
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
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32
from tests.controller.cluster import Cluster, answered

from ottla.controller.image import TOPIC_RESOURCE
from ottla.controller.records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE, milliseconds

FIRST = UUID(int=1)


def creation(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=topics, timeout=milliseconds(1000), validate_only=validate_only
    )


def topic(
    name: str,
    partitions: int = -1,
    replication: int = -1,
    configs: Mapping[str, str | None] | None = None,
    assignments: Mapping[int, Sequence[int]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(replication),
        assignments=tuple(
            CreatableReplicaAssignment(
                partition_index=i32(index), broker_ids=tuple(map(BrokerId, replicas))
            )
            for index, replicas in (assignments or {}).items()
        ),
        configs=tuple(
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ),
    )


def config(name: str, value: str, source: int = 5) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=name, value=value, read_only=False, config_source=i8(source), is_sensitive=False
    )


def create_one(
    cluster: Cluster, *args: Any, **kwargs: Any
) -> tuple[Result[Any], CreatableTopicResult]:
    result = cluster.result_of(creation(topic(*args, **kwargs)))
    (answer,) = answered(result).topics
    return result, answer


def test_a_topic_is_created_with_exact_records_and_response() -> None:
    cluster = Cluster(brokers=2)
    result = cluster.result_of(creation(topic("orders", 2, 2, configs={"retention.ms": " 5 "})))
    assert result.records == (
        TopicRecord(name=TopicName("orders"), topic_id=FIRST),
        ConfigRecord(
            resource_type=TOPIC_RESOURCE, resource_name="orders", name="retention.ms", value="5"
        ),
        PartitionRecord(
            partition_id=i32(0),
            topic_id=FIRST,
            replicas=(BrokerId(1), BrokerId(2)),
            isr=(BrokerId(1), BrokerId(2)),
            leader=BrokerId(1),
        ),
        PartitionRecord(
            partition_id=i32(1),
            topic_id=FIRST,
            replicas=(BrokerId(2), BrokerId(1)),
            isr=(BrokerId(2), BrokerId(1)),
            leader=BrokerId(2),
        ),
    )
    assert result.response == CreateTopicsResponse(
        throttle_time=NO_THROTTLE,
        topics=(
            CreatableTopicResult(
                name=TopicName("orders"),
                topic_id=FIRST,
                error_code=ErrorCode.none,
                error_message=None,
                num_partitions=i32(2),
                replication_factor=i16(2),
                configs=(
                    config("retention.ms", "5", source=1),
                    config("cleanup.policy", "delete"),
                    config("min.insync.replicas", "1"),
                    config("unclean.leader.election.enable", "false"),
                ),
            ),
        ),
    )


def test_nothing_changes_before_replay() -> None:
    cluster = Cluster()
    cluster.result_of(creation(topic("orders")))
    assert list(cluster.image.topic_names()) == []


def test_counts_of_minus_one_take_the_brokers_defaults() -> None:
    cluster = Cluster(brokers=3, num_partitions=4, default_replication_factor=2)
    _, answer = create_one(cluster, "orders")
    assert (answer.num_partitions, answer.replication_factor) == (4, 2)


@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (3, 3), (4, 3)])
def test_by_default_there_are_three_replicas_or_as_many_as_brokers(
    brokers: int, replicas: int
) -> None:
    _, answer = create_one(Cluster(brokers=brokers), "orders")
    assert answer.replication_factor == replicas


def test_validate_only_makes_no_records() -> None:
    cluster = Cluster()
    result = cluster.result_of(creation(topic("orders", 3, 1), validate_only=True))
    (answer,) = answered(result).topics
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
        ({"configs": {"retention.ms": "x"}}, ErrorCode.invalid_config, "Not a number of type LONG"),
        ({"configs": {"retention.ms": None}}, ErrorCode.invalid_config, "Null value not"),
        ({"configs": {"cleanup.policy": "burn"}}, ErrorCode.invalid_config, "burn"),
        ({"assignments": {0: (1,)}, "partitions": 1}, ErrorCode.invalid_request, "must be -1"),
        ({"assignments": {1: (1,)}}, ErrorCode.invalid_replica_assignment, "0 to n - 1"),
        ({"assignments": {0: (1, 1)}}, ErrorCode.invalid_replica_assignment, "more than once"),
        ({"assignments": {0: (7,)}}, ErrorCode.invalid_replica_assignment, "broker 7"),
        (
            {"assignments": {0: (1,), 1: (1, 2)}},
            ErrorCode.invalid_replica_assignment,
            "previous partitions",
        ),
    ],
)
def test_a_bad_topic_is_refused_and_the_others_are_created(
    fields: dict[str, Any],
    code: ErrorCode,
    message: str,
) -> None:
    cluster = Cluster(brokers=2)
    cluster.call(creation(topic("taken"), topic("dotted.name")))
    bad_fields: dict[str, Any] = {"name": "bad"} | fields
    result = cluster.result_of(creation(topic(**bad_fields), topic("good")))
    bad, good = answered(result).topics
    assert bad.error_code is code
    assert message in bad.error_message
    assert bad.topic_id is None
    assert good.error_code is ErrorCode.none
    assert [record.name for record in result.records if isinstance(record, TopicRecord)] == ["good"]


def test_names_that_collide_within_a_request() -> None:
    result = Cluster().machine.topics.create_topics(creation(topic("a.b"), topic("a_b")))
    assert [answer.error_code for answer in answered(result).topics] == [
        ErrorCode.none,
        ErrorCode.invalid_topic_exception,
    ]


def test_a_name_twice_in_a_request_is_refused_once() -> None:
    result = Cluster().machine.topics.create_topics(creation(topic("a"), topic("b"), topic("a")))
    assert [(answer.name, answer.error_code) for answer in answered(result).topics] == [
        ("a", ErrorCode.invalid_request),
        ("b", ErrorCode.none),
    ]


def test_the_partitions_of_all_topics_of_a_request_are_limited() -> None:
    result = Cluster().machine.topics.create_topics(creation(topic("a", 9_000), topic("b", 9_000)))
    assert [answer.error_code for answer in answered(result).topics] == [
        ErrorCode.none,
        ErrorCode.policy_violation,
    ]


def test_a_manual_assignment_is_kept_and_a_fenced_replica_is_not_in_sync() -> None:
    cluster = Cluster(brokers=3)
    cluster.heartbeat(2, want_fence=True)
    result, _ = create_one(cluster, "orders", assignments={1: (3, 1), 0: (2, 3)})
    assert result.records[1:] == (
        PartitionRecord(
            partition_id=i32(0),
            topic_id=FIRST,
            replicas=(BrokerId(2), BrokerId(3)),
            isr=(BrokerId(3),),
            leader=BrokerId(3),
        ),
        PartitionRecord(
            partition_id=i32(1),
            topic_id=FIRST,
            replicas=(BrokerId(3), BrokerId(1)),
            isr=(BrokerId(3), BrokerId(1)),
            leader=BrokerId(3),
        ),
    )


def deletion(*states: dict[str, Any]) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(**state) for state in states), timeout=milliseconds(1000)
    )


def test_topics_are_deleted_by_name_and_by_id() -> None:
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
            DeletableTopicResult(name=TopicName("a"), topic_id=FIRST, error_code=ErrorCode.none),
            DeletableTopicResult(
                name=TopicName("b"), topic_id=UUID(int=2), error_code=ErrorCode.none
            ),
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
def test_what_cannot_be_deleted_is_refused(state: dict[str, Any], code: ErrorCode) -> None:
    cluster = Cluster()
    cluster.call(creation(topic("a")))
    result = cluster.result_of(deletion(state))
    assert result.records == ()
    assert answered(result).responses[0].error_code is code


BY_NAME = {"name": "a", "topic_id": None}
BY_ID = {"name": None, "topic_id": FIRST}


@pytest.mark.parametrize("states", [(BY_NAME, BY_NAME), (BY_ID, BY_ID), (BY_NAME, BY_ID)])
def test_a_topic_that_is_named_twice_is_not_deleted(
    states: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    cluster = Cluster()
    cluster.call(creation(topic("a"), topic("b")))
    result = cluster.result_of(deletion(*states, {"name": "b", "topic_id": None}))
    *refused, deleted = answered(result).responses
    assert {response.error_code for response in refused} == {ErrorCode.invalid_request}
    assert deleted.error_code is ErrorCode.none
    cluster.apply(result)
    assert list(cluster.image.topic_names()) == ["a"]


def test_deletion_can_be_disabled() -> None:
    cluster = Cluster(delete_topic_enable="false")
    cluster.call(creation(topic("a")))
    result = cluster.result_of(deletion({"name": "a", "topic_id": None}))
    assert answered(result).responses[0].error_code is ErrorCode.topic_deletion_disabled


def addition(
    name: str,
    count: int,
    assignments: list[tuple[int, ...]] | None = None,
    validate_only: bool = False,
) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=(
            CreatePartitionsTopic(
                name=TopicName(name),
                count=i32(count),
                assignments=None
                if assignments is None
                else tuple(
                    CreatePartitionsAssignment(broker_ids=tuple(map(BrokerId, ids)))
                    for ids in assignments
                ),
            ),
        ),
        timeout=milliseconds(1000),
        validate_only=validate_only,
    )


@pytest.fixture
def orders() -> Cluster:
    cluster = Cluster(brokers=2)
    cluster.call(creation(topic("orders", 1, 2)))
    return cluster


def test_partitions_are_added_with_the_topics_replication_factor(orders: Cluster) -> None:
    result = orders.result_of(addition("orders", 2))
    assert result.records == (
        PartitionRecord(
            partition_id=i32(1),
            topic_id=FIRST,
            replicas=(BrokerId(1), BrokerId(2)),
            isr=(BrokerId(1), BrokerId(2)),
            leader=BrokerId(1),
        ),
    )
    assert result.response == CreatePartitionsResponse(
        throttle_time=NO_THROTTLE,
        results=(CreatePartitionsTopicResult(name=TopicName("orders"), error_code=ErrorCode.none),),
    )


def test_partitions_are_added_where_they_are_assigned(orders: Cluster) -> None:
    result = orders.result_of(addition("orders", 2, assignments=[(2, 1)]))
    (added,) = result.records
    assert isinstance(added, PartitionRecord)
    assert added.replicas == (2, 1)


def test_partitions_are_not_added_by_a_validation(orders: Cluster) -> None:
    assert orders.result_of(addition("orders", 2, validate_only=True)).records == ()


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (1, "Topic already has 1 partition(s)."),
        (0, "The topic orders currently has 1 partition(s); 0 would not be an increase."),
    ],
)
def test_a_number_of_partitions_that_is_no_more_is_told_from_one_that_is_less(
    orders: Cluster, count: int, message: str
) -> None:
    result = orders.result_of(addition("orders", count))
    assert answered(result).results[0].error_message == message


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
def test_partitions_that_cannot_be_added_are_refused(
    orders: Cluster, request_: CreatePartitionsRequest, code: ErrorCode
) -> None:
    result = orders.result_of(request_)
    assert result.records == ()
    assert answered(result).results[0].error_code is code
