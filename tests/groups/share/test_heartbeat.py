"""ShareGroupHeartbeat and ShareGroupDescribe: exact records and responses."""

from collections.abc import Iterable
from uuid import UUID

import pytest
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32
from tests.groups.kit import ALL_GROUPS, CALLER, START_MS, Coordinator

from ottla.groups.modern import records as modern
from ottla.groups.modern.subscription import metadata_hash
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share import records
from ottla.machine.record import Record
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE, milliseconds

T_ID = UUID(int=1)
ALL_OF_T = frozenset(TopicIdPartition(T_ID, index) for index in range(4))


def beat(
    coordinator: Coordinator,
    member_id: str = "a",
    epoch: int = 0,
    *,
    group: str = "g",
    topics: tuple[str, ...] | None = None,
    rack: str | None = None,
) -> ShareGroupHeartbeatResponse:
    """A joining member subscribes to `t` by default."""
    if epoch == 0 and topics is None:
        topics = ("t",)
    request = ShareGroupHeartbeatRequest(
        group_id=GroupId(group),
        member_id=member_id,
        member_epoch=i32(epoch),
        rack_id=rack,
        subscribed_topic_names=None if topics is None else tuple(map(TopicName, topics)),
    )
    machine = coordinator.machine
    reply = coordinator.run(lambda now_ms: machine.share_group_heartbeat(request, CALLER, now_ms))
    assert isinstance(reply.value, ShareGroupHeartbeatResponse)
    return reply.value


def initialize(coordinator: Coordinator, group: str = "g") -> None:
    machine = coordinator.machine
    missing = machine.share_partitions.uninitialized(group)
    coordinator.run(
        lambda now_ms: machine.share_partitions.list_initialized(group, missing, now_ms)
    )


def assigned(response: ShareGroupHeartbeatResponse) -> list[int] | None:
    if response.assignment is None:
        return None
    return [index for topic in response.assignment.topic_partitions for index in topic.partitions]


def joined(*member_ids: str) -> tuple[Coordinator, dict[str, int]]:
    """A group whose members have their partitions, with the epochs of the members."""
    coordinator = Coordinator()
    for member_id in member_ids:
        beat(coordinator, member_id)
    initialize(coordinator)
    epochs: dict[str, int] = {}
    for member_id in member_ids:
        epochs[member_id] = beat(coordinator, member_id, topics=("t",)).member_epoch
    return coordinator, epochs


def values(partitions: Iterable[int]) -> tuple[modern.TopicPartitions, ...]:
    found = tuple(partitions)
    return (modern.TopicPartitions(topic_id=T_ID, partitions=found),) if found else ()


def epoch_record(epoch: int, count: int) -> Record:
    topics_hash = metadata_hash({T_ID: count} if count else {})
    return Record(
        records.ShareGroupMetadataKey(group_id="g"),
        modern.EpochValue(epoch=epoch, metadata_hash=topics_hash),
    )


def target_record(*partitions: int, member_id: str = "a") -> Record:
    return Record(
        records.ShareGroupTargetAssignmentMemberKey(group_id="g", member_id=member_id),
        modern.TargetAssignmentMemberValue(topic_partitions=values(partitions)),
    )


def assignment_epoch_record(epoch: int) -> Record:
    return Record(
        records.ShareGroupTargetAssignmentMetadataKey(group_id="g"),
        modern.TargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=START_MS),
    )


def current_record(epoch: int, previous: int, *partitions: int, member_id: str = "a") -> Record:
    return Record(
        records.ShareGroupCurrentMemberAssignmentKey(group_id="g", member_id=member_id),
        records.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=previous,
            assigned_partitions=values(partitions),
        ),
    )


def test_joining_before_there_is_state_assigns_nothing() -> None:
    coordinator = Coordinator()

    response = beat(coordinator)

    assert response == ShareGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        member_id="a",
        member_epoch=i32(2),
        heartbeat_interval=milliseconds(200),
        assignment=Assignment(topic_partitions=()),
    )
    assert list(coordinator.last_records) == [
        Record(
            records.ShareGroupMemberMetadataKey(group_id="g", member_id="a"),
            records.ShareGroupMemberMetadataValue(
                client_id="client", client_host="/host", subscribed_topic_names=("t",)
            ),
        ),
        epoch_record(2, 0),
        target_record(),
        assignment_epoch_record(2),
        current_record(2, 0),
    ]
    assert coordinator.machine.share_partitions.uninitialized("g") == ALL_OF_T


def test_partitions_with_state_are_assigned() -> None:
    coordinator = Coordinator()
    beat(coordinator)
    initialize(coordinator)

    assert list(coordinator.last_records) == [
        Record(
            records.ShareGroupStatePartitionMetadataKey(group_id="g"),
            records.ShareGroupStatePartitionMetadataValue(
                initialized_topics=(
                    records.TopicPartitionsInfo(
                        topic_id=T_ID,
                        topic_name="t",
                        partitions=(0, 1, 2, 3),
                        create_timestamp=START_MS,
                    ),
                )
            ),
        ),
        epoch_record(3, 4),
    ]
    response = beat(coordinator, epoch=2)
    assert response.member_epoch == 3
    assert response.assignment == Assignment(
        topic_partitions=(TopicPartitions(topic_id=T_ID, partitions=tuple(map(i32, range(4)))),)
    )
    assert list(coordinator.last_records) == [
        target_record(0, 1, 2, 3),
        assignment_epoch_record(3),
        current_record(3, 2, 0, 1, 2, 3),
    ]
    assert coordinator.machine.share_partitions.uninitialized("g") == frozenset()
    assert beat(coordinator, epoch=3).assignment is None
    assert coordinator.last_records == ()


def test_more_members_than_partitions_share_them() -> None:
    names = [f"m{number}" for number in range(6)]
    coordinator, epochs = joined(*names)

    owned = [assigned(beat(coordinator, name, epochs[name], topics=("t",))) for name in names]

    assert all(partitions and len(partitions) == 1 for partitions in owned)
    assert {index for partitions in owned for index in partitions or ()} == {0, 1, 2, 3}


def test_a_second_member_takes_half_at_once() -> None:
    coordinator, epochs = joined("a")
    response = beat(coordinator, "b")

    assert assigned(response) == [2, 3]
    assert assigned(beat(coordinator, "a", epochs["a"])) == [0, 1]


def test_new_partitions_have_to_be_initialized() -> None:
    coordinator, epochs = joined("a")
    topic_id, _ = coordinator.catalog.topics["t"]
    coordinator.catalog.topics["t"] = (topic_id, 5)
    coordinator.catalog.topics_version += 1

    assert beat(coordinator, "a", epochs["a"]).assignment is None
    initialize(coordinator)
    assert assigned(beat(coordinator, "a", epochs["a"])) == [0, 1, 2, 3, 4]


def test_an_old_epoch_fences_and_the_one_before_does_not() -> None:
    coordinator, epochs = joined("a")
    initial = epochs["a"]
    for member_id in ("b", "c"):
        beat(coordinator, member_id)
        beat(coordinator, "a", initial if member_id == "b" else initial + 1)

    assert beat(coordinator, "a", initial + 1).member_epoch == initial + 2
    for epoch in (initial, initial + 3):
        code = coordinator.refusal(lambda epoch=epoch: beat(coordinator, "a", epoch))  # type: ignore[misc]
        assert code is ErrorCode.fenced_member_epoch


def test_leaving_removes_the_member() -> None:
    coordinator, epochs = joined("a", "b")

    response = beat(coordinator, "a", -1)

    assert response.member_epoch == -1
    keys = [record.key for record in coordinator.last_records if isinstance(record, Record)]
    assert keys == [
        records.ShareGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"),
        records.ShareGroupTargetAssignmentMemberKey(group_id="g", member_id="a"),
        records.ShareGroupMemberMetadataKey(group_id="g", member_id="a"),
        records.ShareGroupMetadataKey(group_id="g"),
    ]
    assert assigned(beat(coordinator, "b", epochs["b"])) == [0, 1, 2, 3]
    assert coordinator.refusal(lambda: beat(coordinator, "a", 1)) is ErrorCode.unknown_member_id


def test_silence_removes_the_member_also_after_a_change_of_coordinator() -> None:
    coordinator, epochs = joined("a", "b")
    coordinator.advance(30_000)
    beat(coordinator, "b", epochs["b"])
    coordinator.reload()
    coordinator.advance(30_000)
    beat(coordinator, "b", epochs["b"])
    coordinator.advance(15_000)

    assert set(coordinator.machine.share_partitions.group("g").members) == {"b"}


@pytest.mark.parametrize(
    ("group", "member_id", "epoch", "topics", "rack"),
    [
        ("", "a", 0, ("t",), None),
        ("g", "", 0, ("t",), None),
        ("g", "a", -2, None, None),
        ("g", "a", 0, (), None),
        ("g", "a", 0, ("t",), ""),
    ],
)
def test_malformed_heartbeats(
    group: str, member_id: str, epoch: int, topics: tuple[str, ...] | None, rack: str | None
) -> None:
    coordinator = Coordinator()
    code = coordinator.refusal(
        lambda: beat(coordinator, member_id, epoch, group=group, topics=topics, rack=rack)
    )
    assert code is ErrorCode.invalid_request


def test_groups_of_other_types_keep_their_names() -> None:
    coordinator, _ = joined("a")
    coordinator.beat("m", group="consumers")

    refused = coordinator.refusal
    assert refused(lambda: beat(coordinator, group="consumers")) is ErrorCode.group_id_not_found
    assert refused(lambda: coordinator.beat("m")) is ErrorCode.group_id_not_found
    assert refused(lambda: coordinator.join()) is ErrorCode.inconsistent_group_protocol
    assert refused(lambda: beat(coordinator, epoch=3, group="x")) is ErrorCode.group_id_not_found


def test_describe_and_list() -> None:
    coordinator, epochs = joined("a")
    machine = coordinator.machine
    (described, missing) = coordinator.run(
        lambda _: machine.describe_share_groups(["g", "x"])
    ).value

    assert (described.group_state, described.assignor_name) == ("Stable", "simple")
    assert described.group_epoch == described.assignment_epoch == epochs["a"]
    (member,) = described.members
    assert member.member_epoch == epochs["a"]
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("t", (0, 1, 2, 3))
    assert missing.error_code is ErrorCode.group_id_not_found
    (listed,) = coordinator.run(lambda _: machine.list_groups(ALL_GROUPS)).value
    assert (listed.group_type, listed.group_state) == ("share", "Stable")


def test_only_empty_groups_are_deleted_and_time_does_not_delete_them() -> None:
    coordinator, _ = joined("a")
    machine = coordinator.machine
    (result,) = coordinator.run(lambda _: machine.delete_groups(["g"])).value
    assert result.error_code is ErrorCode.non_empty_group

    beat(coordinator, "a", -1)
    coordinator.advance(30 * 86_400_000)
    assert machine.share_partitions.group("g").initialized == ALL_OF_T
    (result,) = coordinator.run(lambda _: machine.delete_groups(["g"])).value

    assert result.error_code is ErrorCode.none
    assert (
        coordinator.refusal(lambda: machine.share_partitions.group("g"))
        is ErrorCode.group_id_not_found
    )
    coordinator.reload()
    assert coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value == ()


def test_a_snapshot_gives_the_same_group() -> None:
    coordinator, _ = joined("a", "b")
    before = coordinator.machine.share_partitions.group("g")
    coordinator.log = list(coordinator.machine.snapshot())

    coordinator.reload()

    after = coordinator.machine.share_partitions.group("g")
    assert (after.members, after.targets, after.epoch, after.assignment_epoch) == (
        before.members,
        before.targets,
        before.epoch,
        before.assignment_epoch,
    )
    assert after.initialized == before.initialized


def test_offsets_can_be_set_before_a_group_exists() -> None:
    coordinator = Coordinator()
    machine = coordinator.machine

    assert coordinator.run(lambda _: machine.share_partitions.begin_alteration("g")).value == 2
    assert machine.share_partitions.group("g").state_name == "Empty"
    coordinator.commit({("t", 0): 1}, group="classic")
    refusal = coordinator.refusal(lambda: machine.share_partitions.begin_alteration("classic"))
    assert refusal is ErrorCode.group_id_not_found
    assert coordinator.refusal(lambda: machine.share_partitions.begin_alteration("")) is (
        ErrorCode.invalid_group_id
    )


def test_offsets_of_a_group_with_members_stay() -> None:
    coordinator, _ = joined("a")
    machine = coordinator.machine
    assert (
        coordinator.refusal(lambda: machine.share_partitions.begin_alteration("g"))
        is ErrorCode.non_empty_group
    )
    beat(coordinator, "a", -1)
    epoch = machine.share_partitions.group("g").epoch

    assert (
        coordinator.run(lambda _: machine.share_partitions.begin_alteration("g")).value == epoch + 1
    )
    coordinator.run(lambda now_ms: machine.share_partitions.begin_removal("g", ALL_OF_T, now_ms))
    assert machine.share_partitions.group("g").initialized == frozenset()
    assert machine.share_partitions.group("g").epoch == epoch + 2, (
        "state that is left is not taken up again"
    )


def removing() -> Coordinator:
    """The removal of the group's state has begun."""
    coordinator, _ = joined("a")
    beat(coordinator, "a", -1)
    machine = coordinator.machine
    coordinator.run(lambda now_ms: machine.share_partitions.begin_removal("g", ALL_OF_T, now_ms))
    return coordinator


def end_removal(coordinator: Coordinator) -> None:
    machine = coordinator.machine
    coordinator.run(lambda now_ms: machine.share_partitions.end_removal("g", ALL_OF_T, now_ms))


def state_record(*deleting: str) -> Record:
    topics = tuple(records.TopicInfo(topic_id=T_ID, topic_name=name) for name in deleting)
    return Record(
        records.ShareGroupStatePartitionMetadataKey(group_id="g"),
        records.ShareGroupStatePartitionMetadataValue(deleting_topics=topics),
    )


def test_state_is_known_until_it_is_removed() -> None:
    coordinator = removing()
    assert coordinator.last_records[0] == state_record("t")
    coordinator.reload()
    assert coordinator.machine.share_partitions.with_state("g") == ALL_OF_T

    end_removal(coordinator)

    assert coordinator.last_records == (state_record(),)
    assert coordinator.machine.share_partitions.with_state("g") == frozenset()


def test_the_state_of_a_deleted_topic_need_not_be_removed() -> None:
    coordinator = removing()
    del coordinator.catalog.topics["t"]

    assert coordinator.machine.share_partitions.with_state("g") == frozenset()
    end_removal(coordinator)
    assert coordinator.last_records == (state_record(),)


def test_the_state_of_a_member_that_joined_during_the_removal_is_created_again() -> None:
    coordinator = removing()
    beat(coordinator, "b")
    initialize(coordinator)
    epoch = beat(coordinator, "b", topics=("t",)).member_epoch

    end_removal(coordinator)

    assert coordinator.last_records == (state_record(), epoch_record(epoch + 1, 0))
    assert coordinator.machine.share_partitions.uninitialized("g") == ALL_OF_T
    assert assigned(beat(coordinator, "b", epoch)) == []


def test_what_is_removed_from_a_group_that_was_deleted_meanwhile() -> None:
    coordinator = Coordinator()
    end_removal(coordinator)
    assert coordinator.last_records == ()
