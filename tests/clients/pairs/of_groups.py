"""Pairs of group APIs: classic, consumer and share groups, and their offsets."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.clients.pairs.of_topics import GROUP, set_config
from tests.clients.pairs.pair import PAIRS, Pair, World, code_of_second, only_code, pair, produce
from tests.clients.requests import milliseconds
from tests.clients.versions import build_request

from ottla.protocol.errors import ErrorCode

OFFSET_COMMIT, OFFSET_FETCH, OFFSET_DELETE = 8, 9, 47
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS = 15, 16, 42
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
SHARE_GROUP_HEARTBEAT, SHARE_GROUP_DESCRIBE, SHARE_FETCH, SHARE_ACKNOWLEDGE = 76, 77, 78, 79
DESCRIBE_SHARE_OFFSETS, ALTER_SHARE_OFFSETS, DELETE_SHARE_OFFSETS = 90, 91, 92

INSTANCE = "instance"
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
LEAVING = -1
NO_OFFSET = -1
ACCEPT, RELEASE = 1, 2
LONG_WAIT_MS = 60_000

Heartbeat = Callable[[str, str, int], Any]  # Takes group, topic and member epoch.


def commit(group: str, topic: str, offset: int) -> Any:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    values = {
        "group_id": group,
        "member_id": "",
        "topics": ({"name": topic, "partitions": (partition,)},),
    }
    return build_request(OFFSET_COMMIT, 8, values | {"generation_id_or_member_epoch": -1})


def fetch_offset(group: str, topic: str, *, require_stable: bool = False) -> Any:
    topics = ({"name": topic, "partition_indexes": (0,)},)
    groups = ({"group_id": group, "topics": topics},)
    return build_request(OFFSET_FETCH, 8, {"groups": groups, "require_stable": require_stable})


def committed(response: Any) -> int:
    found: int = response.groups[0].topics[0].partitions[0].committed_offset
    return found


def committed_seen_by_second(_: Any, second: Any) -> int:
    return committed(second)


def delete_offset(group: str, topic: str) -> Any:
    topics = ({"name": topic, "partitions": ({"partition_index": 0},)},)
    return build_request(OFFSET_DELETE, 0, {"group_id": group, "topics": topics})


def delete_groups(group: str) -> Any:
    return build_request(DELETE_GROUPS, 2, {"groups_names": (group,)})


def describe_groups(group: str) -> Any:
    values = {"groups": (group,), "include_authorized_operations": False}
    return build_request(DESCRIBE_GROUPS, 5, values)


def state_seen_by_second(_: Any, second: Any) -> str:
    state: str = second.groups[0].group_state
    return state


def list_groups() -> Any:
    return build_request(LIST_GROUPS, 4, {})


def join(group: str, member_id: str = "") -> Any:
    values = {
        "group_id": group,
        "session_timeout": milliseconds(30_000),
        "rebalance_timeout": milliseconds(30_000),
        "member_id": member_id,
        "group_instance_id": INSTANCE,
        "protocol_type": "consumer",
        "protocols": ({"name": "range", "metadata": b""},),
    }
    return build_request(JOIN_GROUP, 5, values)


def sync(group: str, member_id: str) -> Any:
    values = {
        "group_id": group,
        "generation_id": 1,
        "member_id": member_id,
        "group_instance_id": INSTANCE,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": ({"member_id": member_id, "assignment": b"all"},),
    }
    return build_request(SYNC_GROUP, 5, values)


def heartbeat(group: str, member_id: str) -> Any:
    values = {"group_id": group, "generation_id": 1, "member_id": member_id}
    return build_request(HEARTBEAT, 4, values | {"group_instance_id": INSTANCE})


def leave(group: str) -> Any:
    members = ({"member_id": "", "group_instance_id": INSTANCE},)
    return build_request(LEAVE_GROUP, 5, {"group_id": group, "members": members})


def joined(world: World) -> tuple[str, str]:
    """A group, and its one member's id."""
    group = world.group()
    return group, world.call(join(group)).member_id


def committed_group(world: World) -> tuple[str, str]:
    """A group that has committed offset 7 of a topic."""
    group, topic = world.group(), world.topic()
    world.call(commit(group, topic, 7))
    return group, topic


@pair
def offset_commit_and_offset_fetch(world: World) -> Pair:
    group, topic = committed_group(world)
    return Pair(commit(group, topic, 8), fetch_offset(group, topic), committed_seen_by_second, 8)


@pair
def offset_fetch_and_offset_commit(world: World) -> Pair:
    group, topic = committed_group(world)
    second = commit(group, topic, 8)
    return Pair(fetch_offset(group, topic), second, lambda first, _: committed(first), 7)


@pair
def offset_commit_and_offset_commit(world: World) -> Pair:
    group, topic = committed_group(world)

    def last(*_: Any) -> int:
        return committed(world.call(fetch_offset(group, topic)))

    return Pair(commit(group, topic, 9), commit(group, topic, 8), last, 8)


@pair
def offset_commit_and_describe_groups(world: World) -> Pair:
    group, topic = world.group(), world.topic()
    return Pair(commit(group, topic, 1), describe_groups(group), state_seen_by_second, "Empty")


@pair
def offset_commit_and_list_groups(world: World) -> Pair:
    group, topic = world.group(), world.topic()

    def is_listed(_: Any, second: Any) -> bool:
        return group in [listed.group_id for listed in second.groups]

    return Pair(commit(group, topic, 1), list_groups(), is_listed, True)


@pair
def offset_commit_and_delete_groups(world: World) -> Pair:
    group, topic = world.group(), world.topic()
    return Pair(commit(group, topic, 1), delete_groups(group), code_of_second, ErrorCode.none)


@pair
def offset_delete_and_offset_fetch(world: World) -> Pair:
    group, topic = committed_group(world)
    second = fetch_offset(group, topic)
    return Pair(delete_offset(group, topic), second, committed_seen_by_second, NO_OFFSET)


@pair
def delete_groups_and_offset_fetch(world: World) -> Pair:
    group, topic = committed_group(world)
    second = fetch_offset(group, topic)
    return Pair(delete_groups(group), second, committed_seen_by_second, NO_OFFSET)


@pair
def offset_fetch_and_delete_groups(world: World) -> Pair:
    group, topic = committed_group(world)
    second = delete_groups(group)
    return Pair(fetch_offset(group, topic), second, lambda first, _: committed(first), 7)


@pair
def delete_groups_and_describe_groups(world: World) -> Pair:
    group, _ = committed_group(world)
    return Pair(delete_groups(group), describe_groups(group), state_seen_by_second, "Dead")


@pair
def delete_groups_and_list_groups(world: World) -> Pair:
    group, _ = committed_group(world)

    def is_listed(_: Any, second: Any) -> bool:
        return group in [listed.group_id for listed in second.groups]

    return Pair(delete_groups(group), list_groups(), is_listed, False)


@pair
def delete_groups_and_offset_commit(world: World) -> Pair:
    group, topic = committed_group(world)

    def last(*_: Any) -> int:
        return committed(world.call(fetch_offset(group, topic)))

    return Pair(delete_groups(group), commit(group, topic, 8), last, 8)


@pair
def join_group_and_describe_groups(world: World) -> Pair:
    group = world.group()
    second = describe_groups(group)
    return Pair(join(group), second, state_seen_by_second, "CompletingRebalance")


@pair
def join_group_and_leave_group(world: World) -> Pair:
    group = world.group()
    return Pair(join(group), leave(group), code_of_second, ErrorCode.none)


@pair
def join_group_and_delete_groups(world: World) -> Pair:
    group = world.group()
    return Pair(join(group), delete_groups(group), code_of_second, ErrorCode.non_empty_group)


@pair
def sync_group_and_describe_groups(world: World) -> Pair:
    group, member_id = joined(world)
    return Pair(sync(group, member_id), describe_groups(group), state_seen_by_second, "Stable")


@pair
def sync_group_and_heartbeat(world: World) -> Pair:
    group, member_id = joined(world)
    second = heartbeat(group, member_id)
    return Pair(sync(group, member_id), second, code_of_second, ErrorCode.none)


@pair
def leave_group_and_describe_groups(world: World) -> Pair:
    group, _ = joined(world)
    return Pair(leave(group), describe_groups(group), state_seen_by_second, "Empty")


@pair
def leave_group_and_heartbeat(world: World) -> Pair:
    group, member_id = joined(world)
    second = heartbeat(group, member_id)
    return Pair(leave(group), second, code_of_second, ErrorCode.unknown_member_id)


@pair
def leave_group_and_delete_groups(world: World) -> Pair:
    group, _ = joined(world)
    return Pair(leave(group), delete_groups(group), code_of_second, ErrorCode.none)


def consumer_heartbeat(group: str, topic: str, epoch: int) -> Any:
    values = {
        "group_id": group,
        "member_id": MEMBER,
        "member_epoch": epoch,
        "rebalance_timeout": milliseconds(30_000 if epoch == 0 else -1),
        "subscribed_topic_names": (topic,) if epoch == 0 else None,
        "topic_partitions": () if epoch == 0 else None,
    }
    return build_request(CONSUMER_GROUP_HEARTBEAT, 1, values)


def members_seen_by_second(_: Any, second: Any) -> int:
    return len(second.groups[0].members)


@pair
def consumer_group_leaving_and_delete_groups(world: World) -> Pair:
    group, topic = world.group(), world.topic()
    world.call(consumer_heartbeat(group, topic, 0))
    first = consumer_heartbeat(group, topic, LEAVING)
    return Pair(first, delete_groups(group), code_of_second, ErrorCode.none)


def share_heartbeat(group: str, topic: str, epoch: int) -> Any:
    values = {
        "group_id": group,
        "member_id": MEMBER,
        "member_epoch": epoch,
        "subscribed_topic_names": (topic,) if epoch == 0 else None,
    }
    return build_request(SHARE_GROUP_HEARTBEAT, 1, values)


def describe_modern_group(kind: int, group: str) -> Any:
    values = {"group_ids": (group,), "include_authorized_operations": False}
    return build_request(kind, 1, values)


def coming_and_describe(world: World, heartbeat: Heartbeat, kind: int) -> Pair:
    group, topic = world.group(), world.topic()
    second = describe_modern_group(kind, group)
    return Pair(heartbeat(group, topic, 0), second, members_seen_by_second, 1)


def leaving_and_describe(world: World, heartbeat: Heartbeat, kind: int) -> Pair:
    group, topic = world.group(), world.topic()
    world.call(heartbeat(group, topic, 0))
    second = describe_modern_group(kind, group)
    return Pair(heartbeat(group, topic, LEAVING), second, members_seen_by_second, 0)


for name, heartbeat_of, kind in (
    ("consumer", consumer_heartbeat, CONSUMER_GROUP_DESCRIBE),
    ("share", share_heartbeat, SHARE_GROUP_DESCRIBE),
):
    PAIRS[f"{name}_group_heartbeat_and_describe"] = partial(
        coming_and_describe, heartbeat=heartbeat_of, kind=kind
    )
    PAIRS[f"{name}_group_leaving_and_describe"] = partial(
        leaving_and_describe, heartbeat=heartbeat_of, kind=kind
    )


def alter_share_offset(group: str, topic: str, offset: int) -> Any:
    partition = {"partition_index": 0, "start_offset": offset}
    topics = ({"topic_name": topic, "partitions": (partition,)},)
    return build_request(ALTER_SHARE_OFFSETS, 0, {"group_id": group, "topics": topics})


def describe_share_offset(group: str, topic: str) -> Any:
    topics = ({"topic_name": topic, "partitions": (0,)},)
    groups = ({"group_id": group, "topics": topics},)
    return build_request(DESCRIBE_SHARE_OFFSETS, 0, {"groups": groups})


def share_start(response: Any) -> int:
    found: int = response.groups[0].topics[0].partitions[0].start_offset
    return found


@pair
def alter_share_group_offsets_and_describe(world: World) -> Pair:
    group, topic = world.group(), world.topic(b"a", b"b", b"c")
    world.call(alter_share_offset(group, topic, 1))
    first = alter_share_offset(group, topic, 2)
    second = describe_share_offset(group, topic)
    return Pair(first, second, lambda _, second: share_start(second), 2)


@pair
def delete_share_group_offsets_and_describe(world: World) -> Pair:
    group, topic = world.group(), world.topic(b"a", b"b", b"c")
    world.call(alter_share_offset(group, topic, 1))
    values = {"group_id": group, "topics": ({"topic_name": topic},)}
    first = build_request(DELETE_SHARE_OFFSETS, 0, values)
    second = describe_share_offset(group, topic)
    return Pair(first, second, lambda _, second: share_start(second), NO_OFFSET)


def share_fetch(world: World, group: str, topic: str, epoch: int, *, wait_ms: int = 0) -> Any:
    partition = {"partition_index": 0, "acknowledgement_batches": ()}
    values = {
        "group_id": group,
        "member_id": MEMBER,
        "share_session_epoch": epoch,
        "max_wait": milliseconds(wait_ms),
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "max_records": 100,
        "batch_size": 100,
        "topics": ({"topic_id": world.topic_id(topic), "partitions": (partition,)},),
        "forgotten_topics_data": (),
    }
    return build_request(SHARE_FETCH, 1, values)


def share_acknowledge(world: World, group: str, topic: str, epoch: int, kind: int) -> Any:
    batch = {"first_offset": 0, "last_offset": 1, "acknowledge_types": (kind,)}
    partition = {"partition_index": 0, "acknowledgement_batches": (batch,)}
    values = {
        "group_id": group,
        "member_id": MEMBER,
        "share_session_epoch": epoch,
        "topics": ({"topic_id": world.topic_id(topic), "partitions": (partition,)},),
    }
    return build_request(SHARE_ACKNOWLEDGE, 1, values)


def delivery_counts(response: Any) -> list[int]:
    return [
        acquired.delivery_count
        for topic in response.responses
        for partition in topic.partitions
        for acquired in partition.acquired_records
    ]


def sharing(world: World) -> tuple[str, str]:
    """A group with a member that has been assigned a topic with two records."""
    group, topic = world.group(), world.topic(b"a", b"b")
    world.call(set_config(group, "share.auto.offset.reset", "earliest", kind=GROUP))
    response = world.call(share_heartbeat(group, topic, 0))
    while not (response.assignment and response.assignment.topic_partitions):
        response = world.call(share_heartbeat(group, topic, 0))
    return group, topic


@pair
def share_fetch_and_share_acknowledge(world: World) -> Pair:
    group, topic = sharing(world)
    first = share_fetch(world, group, topic, 0, wait_ms=LONG_WAIT_MS)
    second = share_acknowledge(world, group, topic, 1, ACCEPT)
    return Pair(first, second, lambda _, second: only_code(second), ErrorCode.none)


@pair
def share_acknowledge_and_share_fetch(world: World) -> Pair:
    group, topic = sharing(world)
    fetched = world.call(share_fetch(world, group, topic, 0, wait_ms=LONG_WAIT_MS))
    epoch = 1
    while not delivery_counts(fetched):
        fetched = world.call(share_fetch(world, group, topic, epoch, wait_ms=LONG_WAIT_MS))
        epoch += 1
    first = share_acknowledge(world, group, topic, epoch, RELEASE)
    second = share_fetch(world, group, topic, epoch + 1, wait_ms=LONG_WAIT_MS)
    return Pair(first, second, lambda _, second: delivery_counts(second), [2])


@pair
def produce_and_share_fetch(world: World) -> Pair:
    group, topic = sharing(world)
    fetched = world.call(share_fetch(world, group, topic, 0, wait_ms=LONG_WAIT_MS))
    epoch = 1
    while not delivery_counts(fetched):
        fetched = world.call(share_fetch(world, group, topic, epoch, wait_ms=LONG_WAIT_MS))
        epoch += 1
    second = share_fetch(world, group, topic, epoch)
    return Pair(produce(topic), second, lambda _, second: delivery_counts(second), [1])
