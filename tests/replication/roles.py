"""The roles that partitions have in tests."""

from ottla.replication.partition import Partition
from ottla.replication.partition_follower import PartitionFollower
from ottla.replication.partition_leader import PartitionLeader


def leader_of(partition: Partition) -> PartitionLeader:
    assert partition.leader is not None
    return partition.leader


def follower_of(partition: Partition) -> PartitionFollower:
    assert partition.follower is not None
    return partition.follower
