"""Find the leader of a partition, and move the leadership."""

import time

from ottla.client.wire.cluster import NO_LEADER, Cluster, TopicPartition
from ottla.client.wire.errors import validate_answer
from ottla.client.wire.replicas import elect_request, reassign_request

_PAUSE_S = 0.02
_TIMEOUT_S = 120.0


def leader_of(cluster: Cluster, topic: str, partition: int) -> int:
    """Waits for a leader while there is none."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        found = cluster.topics([topic]).get(topic)
        if found is None or partition not in found.leaders:
            raise ValueError(f"there is no partition {partition} of topic {topic}")
        leader = found.leaders[partition]
        if leader != NO_LEADER:
            return leader
        time.sleep(_PAUSE_S)
    raise TimeoutError(f"nobody leads partition {partition} of topic {topic}")


def move_leader(cluster: Cluster, topic: str, partition: int, to: int) -> None:
    """Returns once `to` leads the partition; ValueError if it has no replica."""
    leader_of(cluster, topic, partition)  # There is one, so the partition exists.
    replicas = cluster.topics([topic])[topic].replicas[partition]
    if to not in replicas:
        raise ValueError(f"node {to} has no replica of {topic}-{partition}; {replicas} have")
    first = (to, *(each for each in replicas if each != to))
    cluster.retry(lambda: _reassign(cluster, topic, partition, first))
    deadline = time.monotonic() + _TIMEOUT_S
    while leader_of(cluster, topic, partition) != to:
        if time.monotonic() > deadline:
            raise TimeoutError(f"node {to} did not become the leader of {topic}-{partition}")
        # What cannot be done yet is tried again.
        cluster.controller().call(elect_request([TopicPartition(topic, partition)]))
        time.sleep(_PAUSE_S)


def _reassign(cluster: Cluster, topic: str, partition: int, replicas: tuple[int, ...]) -> None:
    request = reassign_request({TopicPartition(topic, partition): replicas})
    response = cluster.controller().call(request)
    validate_answer(response.error_code, f"replicas of {topic}-{partition}")
    for answer in response.responses:
        for result in answer.partitions:
            validate_answer(result.error_code, f"replicas of {topic}-{partition}")
