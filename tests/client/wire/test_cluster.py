import pytest
from tests.client.topics import create_topic, delete_topic

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.errors import BrokerError, Unreachable
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition


def test_topics_by_name_and_all(cluster: Cluster) -> None:
    name = create_topic(cluster, partitions=3)
    named = cluster.topics([name, "not-there"])
    assert list(named) == [name]
    assert sorted(named[name].leaders) == [0, 1, 2]
    assert named[name].id is not None
    assert not named[name].is_internal
    assert cluster.topics()[name] == named[name]


def test_a_topic_that_is_made_again_has_another_id(
    cluster: Cluster,
) -> None:
    name = create_topic(cluster)
    before = cluster.topics([name])[name].id
    delete_topic(cluster, name)
    create_topic(cluster, name=name)
    assert cluster.topics([name])[name].id != before


def test_asking_for_a_topic_does_not_make_it(cluster: Cluster) -> None:
    assert cluster.topics(["nobody-made-this"]) == {}
    assert "nobody-made-this" not in cluster.topics()


def test_a_leader_of_nothing(bootstrap: str, topic: str) -> None:
    with Cluster(bootstrap) as cluster:
        with pytest.raises(BrokerError) as no_topic:
            cluster.leader(TopicPartition("not-there", 0))
        with pytest.raises(BrokerError) as no_partition:
            cluster.leader(TopicPartition(topic, 7))
    assert no_topic.value.code is ErrorCode.unknown_topic_or_partition
    assert no_partition.value.code is ErrorCode.unknown_topic_or_partition


def test_the_first_bootstrap_server_that_answers_is_taken(bootstrap: str, topic: str) -> None:
    with Cluster(f"127.0.0.1:1,{bootstrap}") as cluster:
        assert topic in cluster.topics([topic])


def test_no_server_that_answers_is_said_with_every_reason() -> None:
    with (
        Cluster("127.0.0.1:1,127.0.0.1:2", retry_timeout_ms=1) as cluster,
        pytest.raises(Unreachable, match=r"127\.0\.0\.1:1.*127\.0\.0\.1:2"),
    ):
        cluster.topics()


def test_what_passes_is_tried_again_and_what_does_not_is_raised(bootstrap: str) -> None:
    answers: list[Exception | str] = [
        BrokerError(ErrorCode.not_leader_or_follower, "a"),
        Unreachable("b"),
        BrokerError(ErrorCode.concurrent_transactions, "c"),
        "done",
        BrokerError(ErrorCode.invalid_topic_exception, "d"),
    ]

    def operation() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with Cluster(bootstrap) as cluster:
        assert cluster.retry(operation) == "done"
        with pytest.raises(BrokerError, match="d: invalid topic exception"):
            cluster.retry(operation)
