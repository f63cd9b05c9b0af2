"""JoinGroup: becoming a member, and when a generation begins."""

import pytest
from kio.schema.join_group.v9.response import JoinGroupResponse, JoinGroupResponseMember
from kio.static.primitive import i32
from tests.groups.kit import ALL_GROUPS, CALLER, START_MS, Coordinator, subscription

from ottla.groups.classic.records import GroupMetadataValue, MemberMetadata, group_metadata
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE

T = subscription("t")
EMPTY = group_metadata(
    "g",
    GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=START_MS,
        members=(),
    ),
)


def join_error(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=error,
        protocol_name=None,
        leader="",
        member_id=member_id,
        members=(),
    )


def joined(member_id: str, leader: str, *members: str, generation: int = 1) -> JoinGroupResponse:
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        generation_id=i32(generation),
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
        member_id=member_id,
        members=tuple(JoinGroupResponseMember(member_id=each, metadata=T) for each in members),
    )


def test_a_new_member_is_told_its_id_and_comes_back_with_it() -> None:
    coordinator = Coordinator()

    assert coordinator.join().value == join_error(ErrorCode.member_id_required, "client-1")
    assert coordinator.last_records == (EMPTY,)
    reply = coordinator.join("client-1")

    assert reply.waits
    assert coordinator.advance(3_000) == []
    assert reply.value == joined("client-1", "client-1", "client-1")


def test_before_v4_a_new_member_joins_at_once() -> None:
    coordinator = Coordinator()

    reply = coordinator.join(version=3)
    coordinator.advance(3_000)

    assert reply.value.member_id == "client-1"


def test_a_given_id_is_good_for_the_session_timeout() -> None:
    coordinator = Coordinator()
    coordinator.join()

    coordinator.advance(10_000)

    assert coordinator.refusal(lambda: coordinator.join("client-1")) is ErrorCode.unknown_member_id
    assert listed(coordinator) == [("g", "Empty")]
    coordinator.advance(600_000)
    assert listed(coordinator) == []


def listed(coordinator: Coordinator) -> list[tuple[str, str]]:
    groups = coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value
    return [(group.group_id, group.group_state) for group in groups]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"group": ""}, ErrorCode.invalid_group_id),
        ({"session_ms": 5_999}, ErrorCode.invalid_session_timeout),
        ({"session_ms": 1_800_001}, ErrorCode.invalid_session_timeout),
        ({"member_id": "stranger"}, ErrorCode.unknown_member_id),
        ({"protocol_type": ""}, ErrorCode.inconsistent_group_protocol),
    ],
)
def test_a_join_that_is_refused(arguments: dict[str, str], error: ErrorCode) -> None:
    coordinator = Coordinator()

    assert coordinator.refusal(lambda: coordinator.join(**arguments)) is error  # type: ignore[arg-type]
    assert coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value == ()


def test_the_first_rebalance_waits_for_more_members() -> None:
    coordinator = Coordinator()
    first = coordinator.join(version=3)
    coordinator.advance(2_000)
    second = coordinator.join(version=3)

    coordinator.advance(1_000)
    assert first.waits
    coordinator.advance(1_999)
    assert first.waits
    coordinator.advance(1)

    assert first.value == joined("client-1", "client-1", "client-1", "client-2")
    assert second.value == joined("client-2", "client-1")


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    coordinator = Coordinator()
    first = coordinator.join(version=3, rebalance_ms=6_000)
    for _ in range(3):
        coordinator.advance(1_999)
        coordinator.join(version=3, rebalance_ms=6_000)

    assert first.waits
    coordinator.advance(3)

    assert first.value.generation_id == 1


def test_without_a_delay_the_first_member_starts_alone() -> None:
    coordinator = Coordinator(initial_rebalance_delay_ms=0)
    reply = coordinator.join(version=3)

    coordinator.advance(0)

    assert reply.value.generation_id == 1


def test_a_new_member_makes_the_others_rejoin() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()

    newcomer = coordinator.join(version=3)

    assert coordinator.heartbeat(first, 1).error_code is ErrorCode.rebalance_in_progress
    rejoined = coordinator.join(first)
    assert newcomer.waits
    coordinator.join(second)
    assert newcomer.value == joined("client-3", first, generation=2)
    assert rejoined.value == joined(first, first, first, second, "client-3", generation=2)


def test_who_does_not_rejoin_in_time_is_out() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group(session_ms=100_000)
    newcomer = coordinator.join(version=3, rebalance_ms=30_000)
    rejoined = coordinator.join(second, session_ms=100_000)

    coordinator.advance(59_999)
    assert newcomer.waits
    coordinator.advance(1)

    assert rejoined.value == joined(second, second, second, "client-3", generation=2)
    refused = coordinator.refusal(lambda: coordinator.heartbeat(first, 2))
    assert refused is ErrorCode.unknown_member_id


def test_a_member_that_joined_and_went_does_not_hold_up_the_group_for_ever() -> None:
    coordinator = Coordinator()
    (first,) = coordinator.stable_group(1, rebalance_ms=1_000_000, session_ms=10_000)
    gone = coordinator.join(version=3, rebalance_ms=1_000_000)
    for _ in range(31):
        coordinator.advance(9_999)
        coordinator.heartbeat(first, 1)

    assert gone.value == join_error(ErrorCode.unknown_member_id, "")
    assert coordinator.join(first).value == joined(first, first, first, generation=2)


def test_joining_again_while_waiting_answers_the_first_request() -> None:
    coordinator = Coordinator()
    first = coordinator.join(version=3)

    second = coordinator.join("client-1")

    assert first.value == join_error(ErrorCode.rebalance_in_progress, "client-1")
    coordinator.advance(3_000)
    assert second.value == joined("client-1", "client-1", "client-1")


# Rejoining.


def test_the_leader_rejoins_to_have_a_new_assignment() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable_group()

    reply = coordinator.join(leader)

    assert reply.waits
    assert coordinator.heartbeat(follower, 1).error_code is ErrorCode.rebalance_in_progress


def test_a_follower_that_rejoins_unchanged_is_told_the_generation_again() -> None:
    coordinator = Coordinator()
    leader, follower = coordinator.stable_group()

    assert coordinator.join(follower).value == joined(follower, leader)
    assert coordinator.heartbeat(leader, 1).error_code is ErrorCode.none


def test_a_follower_that_rejoins_with_other_metadata_starts_a_rebalance() -> None:
    coordinator = Coordinator()
    _, follower = coordinator.stable_group()

    assert coordinator.join(follower, protocols={"range": subscription("u")}).waits


def test_a_lost_reply_is_given_again_while_the_assignment_is_being_made() -> None:
    coordinator = Coordinator()
    coordinator.join(version=3)
    coordinator.join(version=3)
    coordinator.advance(3_000)

    assert coordinator.join("client-1").value == joined(
        "client-1", "client-1", "client-1", "client-2"
    )
    assert coordinator.join("client-2").value == joined("client-2", "client-1")
    parked = coordinator.sync("client-2", 1)
    assert coordinator.join("client-2", protocols={"range": b""}).waits
    assert parked.value.error_code is ErrorCode.rebalance_in_progress


# Protocols.


def test_the_protocol_with_most_votes_among_the_common_ones_is_taken() -> None:
    coordinator = Coordinator()
    first = coordinator.join(version=3, protocols={"a": b"", "b": b"", "c": b""})
    coordinator.join(version=3, protocols={"c": b"", "b": b"", "d": b""})
    coordinator.join(version=3, protocols={"b": b"", "c": b"", "a": b""})
    coordinator.advance(9_000)

    assert first.value.protocol_name == "b"


def test_a_tie_goes_to_the_member_that_joined_first() -> None:
    coordinator = Coordinator()
    first = coordinator.join(version=3, protocols={"a": b"", "b": b""})
    coordinator.join(version=3, protocols={"b": b"", "a": b""})
    coordinator.advance(9_000)

    assert first.value.protocol_name == "a"


def test_a_member_without_a_common_protocol_is_refused() -> None:
    coordinator = Coordinator()
    coordinator.stable_group()

    def join(**arguments: object) -> ErrorCode:
        return coordinator.refusal(lambda: coordinator.join(**arguments))  # type: ignore[arg-type]

    assert join(protocols={"other": b""}) is ErrorCode.inconsistent_group_protocol
    assert join(protocol_type="connect") is ErrorCode.inconsistent_group_protocol


def test_an_empty_group_takes_any_protocol_type() -> None:
    coordinator = Coordinator()
    (member,) = coordinator.stable_group(1)
    coordinator.leave((member, None))

    reply = coordinator.join(version=3, protocol_type="connect", protocols={"x": b""})
    coordinator.advance(3_000)

    assert (reply.value.generation_id, reply.value.protocol_type) == (3, "connect")


# Size.


def test_a_full_group_takes_nobody_else() -> None:
    coordinator = Coordinator(max_size=2)
    first, second = coordinator.stable_group()

    reply = coordinator.join(version=3)

    assert reply.value == join_error(ErrorCode.group_max_size_reached, "")
    assert coordinator.heartbeat(first, 1).error_code is ErrorCode.none
    coordinator.join(first)
    coordinator.join(second)
    assert coordinator.join(version=3).value.error_code is ErrorCode.group_max_size_reached


def test_while_a_group_rebalances_those_that_rejoin_first_have_room() -> None:
    coordinator = Coordinator(max_size=2)
    first, second = coordinator.stable_group()
    coordinator.join(first)

    newcomer = coordinator.join(version=3)

    assert newcomer.waits
    assert coordinator.join(second).value == join_error(ErrorCode.group_max_size_reached, "")


# Static members (KIP-345).


def static_group(coordinator: Coordinator, *instances: str) -> list[str]:
    replies = [coordinator.join(instance=instance) for instance in instances]
    coordinator.advance(3_000 * (len(instances) + 1))
    return coordinator.sync_all([reply.value for reply in replies])


def test_a_static_member_joins_at_once_and_is_named_after_its_instance() -> None:
    coordinator = Coordinator()

    assert static_group(coordinator, "i", "j") == ["i-1", "j-2"]


def test_a_static_member_that_comes_back_causes_no_rebalance() -> None:
    coordinator = Coordinator()
    static_group(coordinator, "i", "j")

    reply = coordinator.join(instance="j")

    assert reply.value == joined("j-3", "i-1")
    assert coordinator.last_records == (
        group_metadata(
            "g",
            GroupMetadataValue(
                protocol_type="consumer",
                generation=1,
                protocol="range",
                leader="i-1",
                current_state_timestamp=START_MS + 9_000,
                members=(member("i-1", "i", b"i-1"), member("j-3", "j", b"j-2")),
            ),
        ),
    )
    assert coordinator.sync("j-3", 1, instance="j").value.assignment == b"j-2"


def member(member_id: str, instance: str, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=instance,
        client_id="client",
        client_host="/host",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=T,
        assignment=assignment,
    )


def test_the_old_process_of_a_static_member_is_fenced() -> None:
    coordinator = Coordinator()
    static_group(coordinator, "i", "j")
    coordinator.join(instance="j")

    def heartbeat() -> ErrorCode:
        return coordinator.refusal(lambda: coordinator.heartbeat("j-2", 1, instance="j"))

    assert heartbeat() is ErrorCode.fenced_instance_id
    assert coordinator.refusal(lambda: coordinator.join("j-2", instance="j")) is (
        ErrorCode.fenced_instance_id
    )
    assert coordinator.refusal(
        lambda: coordinator.commit({}, member_id="j-2", generation=1, instance="j")
    ) is (ErrorCode.fenced_instance_id)


@pytest.mark.parametrize("version", [8, 9])
def test_a_static_leader_that_comes_back_makes_no_assignment(version: int) -> None:
    coordinator = Coordinator()
    static_group(coordinator, "i", "j")

    response = coordinator.join(instance="i", version=version).value

    if version >= 9:
        assert (response.leader, response.skip_assignment) == ("i-3", True)
        assert [item.member_id for item in response.members] == ["j-2", "i-3"]
    else:
        assert (response.leader, response.skip_assignment, response.members) == ("i-1", False, ())


def test_a_static_member_that_changes_the_protocol_causes_a_rebalance() -> None:
    coordinator = Coordinator()
    both = {"range": T, "sticky": T}
    replies = [coordinator.join(instance=name, protocols=both) for name in ("i", "j")]
    coordinator.advance(9_000)
    coordinator.sync_all([reply.value for reply in replies])

    reply = coordinator.join(instance="j", protocols={"sticky": T})

    assert reply.waits
    assert coordinator.heartbeat("i-1", 1, instance="i").error_code is (
        ErrorCode.rebalance_in_progress
    )


def test_waiting_replies_of_a_fenced_process_are_answered() -> None:
    coordinator = Coordinator()
    old = coordinator.join(instance="i")
    new = coordinator.join(instance="i")

    assert old.value == join_error(ErrorCode.fenced_instance_id, "i-1")
    coordinator.advance(3_000)
    assert (new.value.member_id, new.value.leader) == ("i-2", "i-2")


def test_a_fenced_sync_is_answered_and_the_group_rebalances() -> None:
    coordinator = Coordinator()
    for name in ("i", "j"):
        coordinator.join(instance=name)
    coordinator.advance(9_000)
    parked = coordinator.sync("j-2", 1, instance="j")

    reply = coordinator.join(instance="j")

    assert parked.value.error_code is ErrorCode.fenced_instance_id
    assert reply.waits


def test_a_static_member_stays_when_it_does_not_rejoin() -> None:
    coordinator = Coordinator()
    replies = [coordinator.join(instance=name, session_ms=200_000) for name in ("i", "j")]
    coordinator.advance(9_000)
    coordinator.sync_all([reply.value for reply in replies])
    coordinator.join(version=3)

    coordinator.advance(60_000)

    described = coordinator.run(lambda _: coordinator.machine.describe_groups(["g"], CALLER)).value[
        0
    ]
    assert [item.member_id for item in described.members] == ["i-1", "j-2", "client-3"]


def test_when_only_absent_static_members_are_left_the_join_waits_on() -> None:
    coordinator = Coordinator()
    replies = [coordinator.join(instance=name, session_ms=200_000) for name in ("i", "j")]
    coordinator.advance(9_000)
    coordinator.sync_all([reply.value for reply in replies])
    newcomer = coordinator.join(version=3)
    coordinator.leave((newcomer_id(coordinator), None))
    assert newcomer.value == join_error(ErrorCode.unknown_member_id, "")

    coordinator.advance(60_000)
    reply = coordinator.join("i-1", instance="i", session_ms=200_000)
    coordinator.advance(60_000)

    assert (reply.value.generation_id, reply.value.leader) == (2, "i-1")


def newcomer_id(coordinator: Coordinator) -> str:
    described = coordinator.run(lambda _: coordinator.machine.describe_groups(["g"], CALLER)).value[
        0
    ]
    member_id: str = described.members[-1].member_id
    return member_id


def test_a_dynamic_id_is_not_taken_over_by_a_static_member() -> None:
    coordinator = Coordinator()
    coordinator.join()

    assert coordinator.refusal(lambda: coordinator.join("client-1", instance="i")) is (
        ErrorCode.invalid_request
    )
