"""Changes that affect both the group coordinator's list of share-partitions and their state.

State is created before a partition is listed, and its topic counts as being deleted until the state
is gone; a failed step is repeated by the next request that needs it.
"""

import asyncio
from collections.abc import Mapping

from ottla.groups.partitions import Assignment, TopicIdPartition
from ottla.groups.share.state_coordinator import NO_OFFSET, SharePartitionKey
from ottla.handlers.broker import Broker
from ottla.handlers.internal_topics import create_internal_topic


async def initialize_share_partitions(broker: Broker, group_id: str) -> bool:
    """Create the state of subscribed partitions; returns whether any was missing."""
    machine = broker.groups.find(group_id).machine
    missing = machine.share_partitions.uninitialized(group_id)
    if not missing:
        return False
    state_epoch = machine.share_partitions.group(group_id).epoch
    await set_share_offsets(
        broker, group_id, state_epoch, dict.fromkeys(sorted(missing), NO_OFFSET)
    )
    return True


async def set_share_offsets(
    broker: Broker, group_id: str, state_epoch: int, offsets: Mapping[TopicIdPartition, int]
) -> None:
    if broker.image.partition_count(broker.share.coordinators.topic) is None:
        await create_internal_topic(broker, broker.share.coordinators.topic)
    keys = {
        SharePartitionKey(group_id, *topic_partition): offset
        for topic_partition, offset in offsets.items()
    }
    await asyncio.gather(
        *(
            broker.share.persister.initialize(key, state_epoch, offset)
            for key, offset in keys.items()
        )
    )
    for key in keys:
        broker.share.partitions.drop(key)
    listed: Assignment = frozenset(offsets)
    await broker.groups.find(group_id).submit(
        lambda machine, now_ms: machine.share_partitions.list_initialized(group_id, listed, now_ms)
    )


async def remove_share_offsets(broker: Broker, group_id: str, partitions: Assignment) -> None:
    """For a group without members. ApiError NON_EMPTY_GROUP otherwise."""
    await broker.groups.find(group_id).submit(
        lambda machine, now_ms: machine.share_partitions.begin_removal(group_id, partitions, now_ms)
    )
    keys = [SharePartitionKey(group_id, *topic_partition) for topic_partition in partitions]
    for key in keys:
        broker.share.partitions.drop(key)
    # None may be under way after a failure: it could delete what a new member begins.
    deletions = await asyncio.gather(
        *map(broker.share.persister.delete, keys), return_exceptions=True
    )
    for failure in filter(None, deletions):
        raise failure
    await broker.groups.find(group_id).submit(
        lambda machine, now_ms: machine.share_partitions.end_removal(group_id, partitions, now_ms)
    )
