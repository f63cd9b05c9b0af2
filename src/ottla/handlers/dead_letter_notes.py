"""What an operator must know about the dead letters of a share-partition.

The persisted state tells how many wait, and whether they hold up the group; the metadata tells what
may prevent them from being written.
"""

from typing import Final

from ottla.controller.records import NO_LEADER
from ottla.groups.share.parked import ParkedChange
from ottla.groups.share.partition import SharePartition
from ottla.groups.share.rules import dead_letter_topic, delivery_rules
from ottla.groups.share.state_coordinator import NO_OFFSET, SharePartitionKey, ShareState
from ottla.handlers.broker import Broker
from ottla.protocol.errors import ApiError
from ottla.protocol.topics import TopicPartition

_PARKED_MAX: Final = 100_000  # Beyond that, dead letters are not counted.


async def dead_letter_note(
    broker: Broker, key: SharePartitionKey, summary: ShareState
) -> str | None:
    """None if no dead letters wait, or none are known."""
    topic = broker.image.topic_name(key.topic_id)
    if topic is None or summary.start_offset == NO_OFFSET:
        return None
    try:
        # With its current leader epoch, so that no one is fenced.
        state = await broker.share.persister.read(key, summary.leader_epoch)
        parked: list[ParkedChange] = []
        if 0 < state.parked_count <= _PARKED_MAX:
            parked = await broker.share.persister.read_parked(key, summary.leader_epoch)
    except ApiError:
        return None
    config = broker.share.config(key.group_id)
    rules = delivery_rules(config, topic)
    share = SharePartition(state.start_offset, state.batches, rules, parked)
    count = sum(last - first + 1 for first, last, *_ in share.archiving())
    if not count:
        return None
    source = TopicPartition(topic, key.partition)
    reason = _reason(broker, source, dead_letter_topic(config, topic))
    letters = "1 dead letter waits" if count == 1 else f"{count} dead letters wait"
    if share.waits_for_dead_letters:
        return f"blocked, nothing more is delivered: {letters} to be written; {reason}"
    return f"{letters} to be written; {reason}"


def _reason(broker: Broker, source: TopicPartition, topic: str) -> str:
    image = broker.image
    if not topic:
        return "they will be dropped"
    count = image.partition_count(topic)
    if not count:
        return f"there is no topic {topic} yet"
    target = TopicPartition(topic, source.partition % count)
    state = image.partition(*target)
    if state is None or state.leader == NO_LEADER:
        return f"{target} has no leader"
    leader = image.partition(*source)
    node = f"the leader of {source}" if leader is None else f"node {leader.leader}"
    return f"{target} is led by node {state.leader}; the log of {node} says what is wrong"
