"""Who leads a partition, and letting another node do it."""

import time

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32

from ottla.client.wire.cluster import NO_LEADER, Cluster
from ottla.client.wire.errors import validate_answer
from ottla.protocol.times import milliseconds

_PREFERRED = i8(0)
_PAUSE_S = 0.02
_TIMEOUT_MS = 120_000


def leader_of(cluster: Cluster, topic: str, partition: int) -> int:
    """Waits for a leader while there is none."""
    deadline = time.monotonic() + _TIMEOUT_MS / 1000
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
    """Returns when `to` leads it; ValueError if that has no replica."""
    leader_of(cluster, topic, partition)  # There is one, so the partition exists.
    replicas = cluster.topics([topic])[topic].replicas[partition]
    if to not in replicas:
        raise ValueError(f"node {to} has no replica of {topic}-{partition}; {replicas} have")
    first = (to, *(each for each in replicas if each != to))
    cluster.retry(lambda: _reassign(cluster, topic, partition, first))
    deadline = time.monotonic() + _TIMEOUT_MS / 1000
    while leader_of(cluster, topic, partition) != to:
        if time.monotonic() > deadline:
            raise TimeoutError(f"node {to} did not become the leader of {topic}-{partition}")
        _elect(cluster, topic, partition)
        time.sleep(_PAUSE_S)


def _reassign(cluster: Cluster, topic: str, partition: int, replicas: tuple[int, ...]) -> None:
    wanted = ReassignablePartition(
        partition_index=i32(partition), replicas=tuple(map(BrokerId, replicas))
    )
    request = AlterPartitionReassignmentsRequest(
        timeout=milliseconds(_TIMEOUT_MS),
        topics=(ReassignableTopic(name=TopicName(topic), partitions=(wanted,)),),
    )
    response = cluster.controller().call(request)
    validate_answer(response.error_code, f"replicas of {topic}-{partition}")
    for answer in response.responses:
        for result in answer.partitions:
            validate_answer(result.error_code, f"replicas of {topic}-{partition}")


def _elect(cluster: Cluster, topic: str, partition: int) -> None:
    """What cannot be done yet is tried again by the caller."""
    request = ElectLeadersRequest(
        election_type=_PREFERRED,
        topic_partitions=(TopicPartitions(topic=TopicName(topic), partitions=(i32(partition),)),),
        timeout=milliseconds(_TIMEOUT_MS),
    )
    cluster.controller().call(request)
