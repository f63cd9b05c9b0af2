"""SyncGroup, Heartbeat, LeaveGroup and sessions."""

from kio.schema.leave_group.v5.response import LeaveGroupResponse, MemberResponse
from kio.schema.sync_group.v5.response import SyncGroupResponse
from tests.groups.kit import CALLER, START_MS, Coordinator, Reply, subscription

from ottla.groups.classic.records import GroupMetadataValue, MemberMetadata, group_metadata
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE


def synced(assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        protocol_type="consumer",
        protocol_name="range",
        assignment=assignment,
    )


def member(member_id: str, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member_id,
        client_id="client",
        client_host="/host",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=subscription("t"),
        assignment=assignment,
    )


def joined_pair(coordinator: Coordinator) -> tuple[Reply, Reply]:
    """Members `client-1`, the leader, and `client-2`, which have not synced yet."""
    replies = coordinator.join(version=3), coordinator.join(version=3)
    coordinator.advance(3_000)
    return replies


def state(coordinator: Coordinator) -> str:
    described = coordinator.run(lambda _: coordinator.machine.describe_groups(["g"], CALLER))
    name: str = described.value[0].group_state
    return name


# SyncGroup.


def test_the_leaders_assignment_makes_the_group_stable() -> None:
    coordinator = Coordinator()
    joined_pair(coordinator)
    follower = coordinator.sync("client-2", 1)
    assert follower.waits

    leader = coordinator.sync("client-1", 1, {"client-1": b"one", "client-2": b"two"})

    assert coordinator.last_records == (
        group_metadata(
            "g",
            GroupMetadataValue(
                protocol_type="consumer",
                generation=1,
                protocol="range",
                leader="client-1",
                current_state_timestamp=START_MS + 3_000,
                members=(member("client-1", b"one"), member("client-2", b"two")),
            ),
        ),
    )
    assert leader.value == synced(b"one")
    assert follower.value == synced(b"two")
    assert coordinator.sync("client-2", 1).value == synced(b"two")
    assert state(coordinator) == "Stable"


def test_a_member_that_the_leader_left_out_has_an_empty_assignment() -> None:
    coordinator = Coordinator()
    joined_pair(coordinator)

    coordinator.sync("client-1", 1, {"client-1": b"one", "stranger": b"x"})

    assert coordinator.sync("client-2", 1).value == synced(b"")


def test_a_sync_that_is_refused() -> None:
    coordinator = Coordinator()

    def sync(member_id: str, generation: int, **arguments: str) -> ErrorCode:
        return coordinator.refusal(
            lambda: coordinator.sync(member_id, generation, **arguments)  # type: ignore[arg-type]
        )

    assert sync("client-1", 1) is ErrorCode.unknown_member_id
    assert sync("client-1", 1, group="") is ErrorCode.invalid_group_id
    joined_pair(coordinator)
    assert sync("stranger", 1) is ErrorCode.unknown_member_id
    assert sync("client-1", 2) is ErrorCode.illegal_generation
    assert sync("client-1", 1, protocol_type="x") is ErrorCode.inconsistent_group_protocol
    assert sync("client-1", 1, protocol="x") is ErrorCode.inconsistent_group_protocol
    assert sync("client-1", 1, instance="i") is ErrorCode.unknown_member_id
    assert coordinator.sync("client-2", 1, protocol_type="consumer", protocol="range").waits


def test_a_sync_during_a_rebalance_is_told_to_rejoin() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()
    coordinator.join(first)

    assert coordinator.sync(second, 1).value.error_code is ErrorCode.rebalance_in_progress


def test_waiting_syncs_are_told_to_rejoin_when_a_member_joins() -> None:
    coordinator = Coordinator()
    joined_pair(coordinator)
    parked = coordinator.sync("client-2", 1)

    coordinator.join(version=3)

    assert parked.value.error_code is ErrorCode.rebalance_in_progress
    assert state(coordinator) == "PreparingRebalance"


def test_syncing_again_while_waiting_answers_the_first_request() -> None:
    coordinator = Coordinator()
    joined_pair(coordinator)
    first = coordinator.sync("client-2", 1)

    second = coordinator.sync("client-2", 1)

    assert first.value.error_code is ErrorCode.rebalance_in_progress
    coordinator.sync("client-1", 1, {"client-2": b"two"})
    assert second.value == synced(b"two")


def test_a_member_that_never_syncs_is_removed() -> None:
    coordinator = Coordinator()
    joined_pair(coordinator)
    coordinator.sync("client-1", 1)
    for _ in range(6):
        coordinator.advance(9_900)
        coordinator.heartbeat("client-1", 1)
        coordinator.heartbeat("client-2", 1)

    coordinator.advance(600)

    assert coordinator.heartbeat("client-1", 1).error_code is ErrorCode.rebalance_in_progress
    assert coordinator.refusal(lambda: coordinator.heartbeat("client-2", 1)) is (
        ErrorCode.unknown_member_id
    )


def test_a_leader_that_never_syncs_makes_way() -> None:
    coordinator = Coordinator()
    joined_pair(coordinator)
    parked = coordinator.sync("client-2", 1)
    for _ in range(6):
        coordinator.advance(9_900)
        coordinator.heartbeat("client-1", 1)

    coordinator.advance(600)

    assert parked.value.error_code is ErrorCode.rebalance_in_progress
    reply = coordinator.join("client-2")
    assert (reply.value.leader, reply.value.generation_id) == ("client-2", 2)


def test_when_nobody_syncs_the_group_becomes_empty() -> None:
    coordinator = Coordinator()
    coordinator.join(version=3, session_ms=100_000)
    coordinator.advance(3_000)

    records = coordinator.advance(60_000)

    assert records == [
        group_metadata(
            "g",
            GroupMetadataValue(
                protocol_type="consumer",
                generation=2,
                protocol=None,
                leader=None,
                current_state_timestamp=START_MS + 63_000,
                members=(),
            ),
        )
    ]
    assert state(coordinator) == "Empty"


# Heartbeat and sessions.


def test_heartbeats_keep_a_member_in_the_group() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()

    for _ in range(5):
        coordinator.advance(9_999)
        assert coordinator.heartbeat(first, 1).error_code is ErrorCode.none
        assert coordinator.heartbeat(second, 1).error_code is ErrorCode.none


def test_a_member_without_heartbeats_is_removed() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()
    coordinator.advance(9_999)
    coordinator.heartbeat(first, 1)

    coordinator.advance(1)

    assert coordinator.heartbeat(first, 1).error_code is ErrorCode.rebalance_in_progress
    assert coordinator.refusal(lambda: coordinator.heartbeat(second, 1)) is (
        ErrorCode.unknown_member_id
    )
    assert coordinator.join(first).value.generation_id == 2


def test_a_heartbeat_that_is_refused() -> None:
    coordinator = Coordinator()

    def heartbeat(member_id: str, generation: int, **arguments: str) -> ErrorCode:
        return coordinator.refusal(
            lambda: coordinator.heartbeat(member_id, generation, **arguments)
        )

    assert heartbeat("m", 1) is ErrorCode.unknown_member_id
    assert heartbeat("m", 1, group="") is ErrorCode.invalid_group_id
    first, _ = coordinator.stable_group()
    assert heartbeat(first, 2) is ErrorCode.illegal_generation
    assert heartbeat("stranger", 1) is ErrorCode.unknown_member_id


def test_heartbeats_are_answered_while_the_assignment_is_being_made() -> None:
    coordinator = Coordinator()
    joined_pair(coordinator)

    assert coordinator.heartbeat("client-2", 1).error_code is ErrorCode.none


def test_a_waiting_member_needs_no_heartbeat() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()
    parked = coordinator.join(first)
    for _ in range(5):
        coordinator.advance(9_999)
        coordinator.heartbeat(second, 1)

    assert parked.waits
    coordinator.join(second)
    assert parked.value.generation_id == 2


def test_the_last_member_that_fails_leaves_an_empty_group() -> None:
    coordinator = Coordinator()
    coordinator.stable_group(1)

    (record,) = coordinator.advance(10_000)

    assert record == coordinator.log[-1]
    assert state(coordinator) == "Empty"
    assert coordinator.timers.names() == {"offsets/expire"}


# LeaveGroup.


def test_a_member_that_leaves_makes_the_others_rejoin() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()

    response = coordinator.leave((first, None))

    assert response == LeaveGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        members=(
            MemberResponse(member_id=first, group_instance_id=None, error_code=ErrorCode.none),
        ),
    )
    assert coordinator.heartbeat(second, 1).error_code is ErrorCode.rebalance_in_progress
    reply = coordinator.join(second)
    assert (reply.value.leader, reply.value.generation_id) == (second, 2)


def test_the_last_member_that_leaves_writes_an_empty_group() -> None:
    coordinator = Coordinator()
    (member_id,) = coordinator.stable_group(1)

    coordinator.leave((member_id, None))

    assert coordinator.last_records == (
        group_metadata(
            "g",
            GroupMetadataValue(
                protocol_type="consumer",
                generation=2,
                protocol=None,
                leader=None,
                current_state_timestamp=coordinator.now_ms,
                members=(),
            ),
        ),
    )


def test_several_members_leave_at_once() -> None:
    coordinator = Coordinator()
    for name in ("i", "j"):
        coordinator.join(instance=name)
    pending = coordinator.join().value.member_id
    coordinator.advance(9_000)

    response = coordinator.leave(
        ("", "i"), ("wrong", "j"), ("", "k"), ("stranger", None), (pending, None), ("", None)
    )

    assert [item.error_code for item in response.members] == [
        ErrorCode.none,
        ErrorCode.fenced_instance_id,
        ErrorCode.unknown_member_id,
        ErrorCode.unknown_member_id,
        ErrorCode.none,
        ErrorCode.unknown_member_id,
    ]
    assert response.error_code is ErrorCode.none
    assert response.members[0].member_id == ""


def test_a_pending_member_that_leaves_disturbs_nobody() -> None:
    coordinator = Coordinator()
    first, _ = coordinator.stable_group()
    pending = coordinator.join().value.member_id

    coordinator.leave((pending, None))

    assert coordinator.heartbeat(first, 1).error_code is ErrorCode.none
    assert coordinator.refusal(lambda: coordinator.join(pending)) is ErrorCode.unknown_member_id


def test_a_pending_member_holds_up_the_rebalance_until_it_joins_or_goes() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()
    pending = coordinator.join().value.member_id
    parked = coordinator.join(first)
    coordinator.join(second)
    assert parked.waits

    coordinator.leave((pending, None))

    assert parked.value.generation_id == 2


def test_leaving_an_unknown_group() -> None:
    coordinator = Coordinator()

    response = coordinator.leave(("m", None))

    assert response.error_code is ErrorCode.none
    assert [member.error_code for member in response.members] == [ErrorCode.unknown_member_id]
    assert coordinator.refusal(lambda: coordinator.leave(("m", None), group="")) is (
        ErrorCode.invalid_group_id
    )


def test_a_member_that_leaves_while_it_waits_is_answered() -> None:
    coordinator = Coordinator()
    joined_pair(coordinator)
    parked = coordinator.sync("client-2", 1)

    coordinator.leave(("client-2", None))

    assert parked.value.error_code is ErrorCode.unknown_member_id
