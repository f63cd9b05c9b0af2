"""Chooses the replica from which a consumer should read (KIP-392)."""

from ottla.controller.image import MetadataImage
from ottla.replication.partition import Partition

LEADER = -1  # Stay with the leader.


def nearest_replica(
    image: MetadataImage, node_id: int, partition: Partition, offset: int, rack: str
) -> int:
    """The leader or an in-sync follower that has the offset and is in the consumer's rack.

    Prefers the leader, then the follower with most of the log. LEADER if none is in that rack.
    """
    leader = partition.leader
    followers = None if leader is None else leader.followers
    if followers is None or _rack(image, node_id) == rack:
        return LEADER
    near = [
        follower
        for follower in followers
        if follower.replica_id in followers.isr
        and follower.log_start_offset <= offset <= follower.fetch_offset
        and _rack(image, follower.replica_id) == rack
    ]
    if not near:
        return LEADER
    return max(near, key=lambda follower: follower.fetch_offset).replica_id


def _rack(image: MetadataImage, broker_id: int) -> str | None:
    broker = image.brokers.get(broker_id)
    return None if broker is None or broker.fenced else broker.rack
