from tests.client.topics import create_topic

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.groups import commit_offsets, committed_offsets


def test_what_was_committed_is_found_again(cluster: Cluster) -> None:
    topic = create_topic(cluster, partitions=3)
    first, second, third = (TopicPartition(topic, index) for index in range(3))
    commit_offsets(cluster, topic, {first: 5, second: 2**40})
    commit_offsets(cluster, topic, {first: 6})
    found = committed_offsets(cluster, topic, [first, second, third])
    assert found == {first: 6, second: 2**40}


def test_a_group_that_never_committed(cluster: Cluster, topic: str) -> None:
    assert committed_offsets(cluster, f"nobody-{topic}", [TopicPartition(topic, 0)]) == {}
