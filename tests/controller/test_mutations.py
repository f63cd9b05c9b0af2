from typing import Any

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32
from tests.controller.cluster import Cluster

from ottla.controller.image import quota_record
from ottla.controller.mutations import BUCKETS_UNSWEPT_MAX, Caller
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE, in_milliseconds
from ottla.security.principal import Principal
from ottla.security.quotas import CLIENT_ID, CONTROLLER_MUTATION_RATE, USER, Entity

ANN = Caller(Principal("User", "ann"), "127.0.0.1", "app", is_strict=True)
OLD_ANN = Caller(Principal("User", "ann"), "127.0.0.1", "app", is_strict=False)
OF_ANN: Entity = ((USER, "ann"),)


def limited_cluster(entity: Entity = OF_ANN) -> Cluster:
    """Two partitions per second; up to 22 can accumulate."""
    cluster = Cluster()
    cluster.replay(quota_record(entity, CONTROLLER_MUTATION_RATE, 2.0))
    return cluster


def creation(*topics: tuple[str, int]) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=TopicName(name),
                num_partitions=i32(count),
                replication_factor=i16(1),
                assignments=(),
                configs=(),
            )
            for name, count in topics
        ),
        timeout=NO_THROTTLE,
        validate_only=False,
    )


def outcome(response: Any) -> tuple[list[ErrorCode], int]:
    results = getattr(response, "topics", None) or getattr(response, "responses", None)
    codes = [result.error_code for result in results or response.results]
    return codes, in_milliseconds(response.throttle_time)


def test_what_was_saved_up_may_be_exceeded_once() -> None:
    cluster = limited_cluster()
    response = cluster.call(creation(("a", 10), ("b", 20), ("c", 1)), ANN)
    exceeded = ErrorCode.throttling_quota_exceeded
    assert outcome(response) == ([ErrorCode.none, ErrorCode.none, exceeded], 4000)
    assert list(cluster.image.topics) == ["a", "b"]
    cluster.now_ms += 4000
    assert outcome(cluster.call(creation(("c", 1)), ANN)) == ([ErrorCode.none], 0)


def test_a_client_that_does_not_know_the_error_is_slowed_down_afterwards() -> None:
    cluster = limited_cluster()
    response = cluster.call(creation(("a", 30), ("b", 1)), OLD_ANN)
    assert outcome(response) == ([ErrorCode.none] * 2, 4500)


def test_partitions_that_are_added_and_deleted_count_as_well() -> None:
    cluster = limited_cluster()
    cluster.call(creation(("a", 3)), ANN)
    adding = CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=TopicName("a"), count=i32(30), assignments=None),),
        timeout=NO_THROTTLE,
        validate_only=False,
    )
    assert outcome(cluster.call(adding, ANN)) == ([ErrorCode.none], 0)
    deletion = DeleteTopicsRequest(
        topics=(DeleteTopicState(name=TopicName("a"), topic_id=None),), timeout=NO_THROTTLE
    )
    refused = ([ErrorCode.throttling_quota_exceeded], 4000)
    assert outcome(cluster.call(deletion, ANN)) == refused
    cluster.now_ms += 4000
    assert outcome(cluster.call(deletion, ANN)) == ([ErrorCode.none], 0)
    assert outcome(cluster.call(creation(("b", 1)), ANN)) == (
        [ErrorCode.throttling_quota_exceeded],
        15_000,
    )


def test_others_and_nodes_have_no_quota() -> None:
    cluster = limited_cluster()
    for number, caller in enumerate((ANN._replace(principal=Principal("User", "bob")), None)):
        response = cluster.call(creation((f"a{number}", 100), (f"b{number}", 100)), caller)
        assert outcome(response) == ([ErrorCode.none] * 2, 0)


def test_client_ids_without_end_leave_nothing_behind() -> None:
    cluster = limited_cluster(((CLIENT_ID, None),))
    mutations = cluster.machine.mutations
    for number in range(5 * BUCKETS_UNSWEPT_MAX):
        mutations.of(ANN._replace(client_id=f"client-{number}"), number * 100).take(1)
    assert len(mutations._buckets) <= 2 * BUCKETS_UNSWEPT_MAX
