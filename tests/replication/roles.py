"""Partition roles for tests."""

from ottla.replication.followers import Followers
from ottla.replication.partition import Partition
from ottla.replication.partition_follower import PartitionFollower
from ottla.replication.partition_leader import PartitionLeader


def leader_of(partition: Partition) -> PartitionLeader:
    assert partition.leader is not None
    return partition.leader


def follower_of(partition: Partition) -> PartitionFollower:
    assert partition.follower is not None
    return partition.follower


def followers_of(partition: Partition) -> Followers:
    assert partition.followers is not None
    return partition.followers


def proposed_isr(partition: Partition) -> tuple[int, ...] | None:
    """The replicas in a change that the controller has not decided yet."""
    change = followers_of(partition).pending
    return None if change is None else change.isr
