"""Groups that switch between the classic and the consumer protocol while they have members."""

from typing import Any

import pytest
from tests.groups.kit import ALL_GROUPS, Coordinator, subscription

from ottla.groups.classic.records import group_tombstone
from ottla.groups.consumer_protocol import parse_assignment, write_assignment
from ottla.protocol.errors import ErrorCode


def group_type(coordinator: Coordinator) -> tuple[str, str]:
    (listed,) = coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value
    return listed.group_type, listed.group_state


def owning(*partitions: int, topic: str = "t") -> dict[str, bytes]:
    """A version 1 subscription of a member that owns these partitions."""
    owned = write_assignment(1, {topic: partitions})[2:-4] if partitions else bytes(4)
    return {"range": b"\x00\x01" + subscription(topic)[2:] + owned}


def assigned(data: bytes) -> dict[str, tuple[int, ...]]:
    return dict(parse_assignment(data))


def upgraded_group() -> tuple[Coordinator, str]:
    """A classic member that owns all of `t`, and a consumer member that has just joined."""
    coordinator = Coordinator()
    reply = coordinator.join(version=3, protocols=owning())
    coordinator.advance(3_000)
    member_id = reply.value.member_id
    everything = write_assignment(1, {"t": (0, 1, 2, 3)})
    coordinator.sync(member_id, 1, {member_id: everything})
    coordinator.beat("new")
    return coordinator, member_id


def test_a_classic_group_is_upgraded_by_its_first_consumer_member() -> None:
    coordinator, member_id = upgraded_group()

    assert coordinator.last_records[0] == group_tombstone("g")
    assert group_type(coordinator) == ("consumer", "Reconciling")
    heartbeat = coordinator.heartbeat(member_id, 1)
    assert heartbeat.error_code is ErrorCode.rebalance_in_progress


def test_the_classic_member_goes_on_in_the_consumer_group() -> None:
    coordinator, member_id = upgraded_group()

    rejoined = coordinator.join(member_id, protocols=owning(0, 1, 2, 3)).value
    assert (rejoined.generation_id, rejoined.leader, rejoined.protocol_name) == (1, "", "range")
    synced = coordinator.sync(member_id, 1, protocol="range", protocol_type="consumer").value
    assert assigned(synced.assignment) == {"t": (0, 1)}
    assert coordinator.assigned(coordinator.beat("new", 2)) is None

    assert coordinator.heartbeat(member_id, 1).error_code is ErrorCode.rebalance_in_progress
    revoked = coordinator.join(member_id, protocols=owning(0, 1)).value
    assert revoked.generation_id == 2
    assert assigned(coordinator.sync(member_id, 2).value.assignment) == {"t": (0, 1)}
    assert coordinator.heartbeat(member_id, 2).error_code is ErrorCode.none
    assert coordinator.assigned(coordinator.beat("new", 2)) == {("t", 2), ("t", 3)}
    assert group_type(coordinator) == ("consumer", "Stable")
    coordinator.commit({("t", 0): 5}, member_id=member_id, generation=2, version=7)
    refused = coordinator.refusal(
        lambda: coordinator.commit({("t", 0): 5}, member_id=member_id, generation=1)
    )
    assert refused is ErrorCode.illegal_generation


def test_replies_that_wait_are_sent_to_rejoin_by_the_upgrade() -> None:
    coordinator = Coordinator()
    waiting = coordinator.join(version=3, protocols=owning())

    coordinator.beat("new")

    assert waiting.value.error_code is ErrorCode.rebalance_in_progress
    rejoined = coordinator.join("client-1", protocols=owning()).value
    assert rejoined.generation_id == 1
    assert assigned(coordinator.sync("client-1", 1).value.assignment) == {"t": (0, 1)}


def test_a_group_of_another_kind_is_not_upgraded() -> None:
    coordinator = Coordinator()
    coordinator.stable_group(1, protocol_type="connect", protocols={"x": b""})

    assert coordinator.refusal(lambda: coordinator.beat("new")) is ErrorCode.group_id_not_found
    assert group_type(coordinator) == ("classic", "Stable")


def test_subscriptions_that_cannot_be_read_are_not_upgraded() -> None:
    coordinator = Coordinator()
    coordinator.stable_group(1, protocols={"range": b"?"})

    assert coordinator.refusal(lambda: coordinator.beat("new")) is ErrorCode.group_id_not_found


def test_the_policy_can_forbid_it() -> None:
    coordinator = Coordinator(consumer_migration_policy="disabled")
    coordinator.join(version=3, protocols=owning())

    assert coordinator.refusal(lambda: coordinator.beat("new")) is ErrorCode.group_id_not_found
    coordinator.advance(3_000)
    assert group_type(coordinator) == ("classic", "CompletingRebalance")


@pytest.mark.parametrize("version", [3, 9])
def test_the_policy_can_forbid_classic_members(version: int) -> None:
    coordinator = Coordinator(consumer_migration_policy="disabled")
    coordinator.beat("new")

    code = coordinator.refusal(lambda: coordinator.join(version=version, protocols=owning()))

    assert code is ErrorCode.inconsistent_group_protocol


def test_a_partition_that_two_classic_members_had_stays_with_one() -> None:
    coordinator = Coordinator()
    replies = [coordinator.join(version=3, protocols=owning()) for _ in range(2)]
    coordinator.advance(3_000)
    first, second = (reply.value.member_id for reply in replies)
    everything = write_assignment(1, {"t": (0, 1, 2, 3)})
    coordinator.sync(first, 1, {first: everything, second: everything})

    coordinator.beat("new")

    assert coordinator.assigned(coordinator.beat("new", 2)) is None
    synced = coordinator.join(second, protocols=owning()).value
    assert assigned(coordinator.sync(second, synced.generation_id).value.assignment) == {}


def test_an_empty_classic_group_becomes_a_consumer_group() -> None:
    coordinator = Coordinator()
    (member_id,) = coordinator.stable_group(1)
    coordinator.commit({("t", 0): 3}, member_id=member_id, generation=1)
    coordinator.leave((member_id, None))

    assert coordinator.beat("new").member_epoch == 2

    assert group_type(coordinator) == ("consumer", "Stable")
    assert coordinator.offsets() == {("t", 0): 3}


def test_an_empty_consumer_group_becomes_a_classic_group() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("m", -1)

    (member_id,) = coordinator.stable_group(1)

    assert group_type(coordinator) == ("classic", "Stable")
    coordinator.reload()
    assert group_type(coordinator) == ("classic", "Stable")
    assert coordinator.heartbeat(member_id, 1).error_code is ErrorCode.none


def test_a_client_that_is_only_told_its_id_leaves_one_group_not_two() -> None:
    """Its first join already writes the classic group, which replaces the empty consumer group."""
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("m", -1)

    assert coordinator.join().value.error_code is ErrorCode.member_id_required

    coordinator.reload()
    assert group_type(coordinator) == ("classic", "Empty")
    (deleted,) = coordinator.run(lambda _: coordinator.machine.delete_groups(["g"])).value
    assert deleted.error_code is ErrorCode.none
    assert coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value == ()


def test_a_group_of_classic_members_only_is_downgraded() -> None:
    coordinator, member_id = upgraded_group()
    coordinator.join(member_id, protocols=owning(0, 1))
    coordinator.sync(member_id, 2)

    coordinator.beat("new", -1)

    assert group_type(coordinator) == ("classic", "PreparingRebalance")
    assert not [key for key in coordinator.timers.names() if key.startswith("consumer/")]
    heartbeat = coordinator.heartbeat(member_id, 3)
    assert heartbeat.error_code is ErrorCode.rebalance_in_progress
    joined = coordinator.join(member_id, protocols=owning(0, 1)).value
    assert (joined.generation_id, joined.leader) == (4, member_id)
    coordinator.reload()
    assert group_type(coordinator) == ("classic", "Stable")


def test_a_failed_consumer_member_downgrades_the_group_too() -> None:
    coordinator, member_id = upgraded_group()
    coordinator.join(member_id, protocols=owning(0, 1))
    coordinator.sync(member_id, 2)
    for _ in range(5):
        coordinator.advance(9_000)
        if group_type(coordinator)[0] == "consumer":
            coordinator.heartbeat(member_id, 2)

    assert group_type(coordinator)[0] == "classic"


def test_a_static_member_goes_back_to_the_classic_protocol() -> None:
    coordinator, member_id = upgraded_group()
    coordinator.beat("new", -1)
    coordinator.join(member_id, protocols=owning(0, 1, 2, 3))
    coordinator.sync(member_id, 4, {member_id: write_assignment(1, {"t": (0, 1, 2, 3)})})
    coordinator.beat("static", instance="i")
    coordinator.join(member_id, protocols=owning(0, 1))

    replaced = coordinator.join(instance="i", version=9, protocols=owning()).value

    assert replaced.error_code is ErrorCode.none
    assert group_type(coordinator) == ("classic", "Stable")
    synced = coordinator.sync(replaced.member_id, 5, instance="i").value
    assert assigned(synced.assignment) == {"t": (2, 3)}


def test_what_a_cooperative_member_claims_is_its_own_until_it_rejoins() -> None:
    coordinator = Coordinator()
    replies = [coordinator.join(version=3, protocols=owning()) for _ in range(2)]
    coordinator.advance(3_000)
    leader, slow = (reply.value.member_id for reply in replies)
    two_each = {
        leader: write_assignment(1, {"t": (0, 1)}),
        slow: write_assignment(1, {"t": (2, 3)}),
    }
    coordinator.sync(leader, 1, two_each)
    coordinator.sync(slow, 1)
    third = coordinator.join(version=3, protocols=owning())
    coordinator.join(slow, protocols=owning(2, 3))
    coordinator.join(leader, protocols=owning(0, 1))
    assert third.value.generation_id == 2
    one_less = two_each | {slow: write_assignment(1, {"t": (2,)})}
    coordinator.sync(leader, 2, one_less)

    assert coordinator.assigned(coordinator.beat("new")) == set()
    coordinator.join(slow, protocols=owning(2))
    assert coordinator.assigned(coordinator.beat("new", 3)) == {("t", 3)}


def test_a_downgrade_gives_out_nothing_that_another_member_still_has() -> None:
    coordinator = Coordinator()
    reply = coordinator.join(version=3, protocols=owning())
    coordinator.advance(3_000)
    holder = reply.value.member_id
    everything = write_assignment(1, {"t": (0, 1, 2, 3)})
    coordinator.sync(holder, 1, {holder: everything})
    coordinator.beat("new", instance="i")
    coordinator.join(holder, protocols=owning(0, 1, 2, 3))

    replaced = coordinator.join(instance="i", protocols=owning()).value

    assert group_type(coordinator) == ("classic", "PreparingRebalance")
    for _ in range(2):
        refused = coordinator.refusal(
            lambda: coordinator.sync(replaced.member_id, replaced.generation_id, instance="i")
        )
        assert refused is ErrorCode.illegal_generation
        assert coordinator.refusal(lambda: coordinator.heartbeat(holder, 1)) is (
            ErrorCode.illegal_generation
        )
        coordinator.reload()


# Members of the classic protocol in a consumer group.


def test_a_new_classic_member_joins_a_consumer_group() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    required = coordinator.join(protocols=owning()).value
    assert required.error_code is ErrorCode.member_id_required
    joined = coordinator.join(required.member_id, protocols=owning()).value

    assert (joined.error_code, joined.generation_id) == (ErrorCode.none, 3)
    assert assigned(coordinator.sync(joined.member_id, 3).value.assignment) == {}
    coordinator.beat("m", 2)
    coordinator.beat("m", 2, owned={("t", 0), ("t", 1)})
    heartbeat = coordinator.heartbeat(joined.member_id, 3)
    assert heartbeat.error_code is ErrorCode.rebalance_in_progress
    coordinator.join(joined.member_id, protocols=owning())
    synced = coordinator.sync(joined.member_id, 3).value
    assert assigned(synced.assignment) == {"t": (2, 3)}


def test_what_a_consumer_group_refuses_of_classic_members() -> None:
    coordinator, member_id = upgraded_group()

    def join(**arguments: Any) -> ErrorCode:
        return coordinator.refusal(lambda: coordinator.join(version=3, **arguments))

    inconsistent = ErrorCode.inconsistent_group_protocol
    assert join(protocol_type="connect") is inconsistent
    assert join(protocols={"other": subscription("t")}) is inconsistent
    assert join(protocols={"range": b"?"}) is inconsistent
    assert join(session_ms=1) is ErrorCode.invalid_session_timeout

    def refused(operation: str, *arguments: Any, **more: Any) -> ErrorCode:
        return coordinator.refusal(lambda: getattr(coordinator, operation)(*arguments, **more))

    assert refused("heartbeat", "new", 2) is ErrorCode.unknown_member_id
    assert refused("heartbeat", "stranger", 2) is ErrorCode.unknown_member_id
    assert refused("heartbeat", member_id, 7) is ErrorCode.illegal_generation
    assert refused("sync", member_id, 7) is ErrorCode.illegal_generation
    assert refused("sync", member_id, 1, protocol="other") is inconsistent
    behind = coordinator.sync(member_id, 1).value
    assert behind.error_code is ErrorCode.rebalance_in_progress


def test_a_classic_member_that_does_not_rejoin_in_time_is_removed() -> None:
    coordinator, member_id = upgraded_group()
    for _ in range(6):
        coordinator.heartbeat(member_id, 1)
        coordinator.advance(9_999)
        coordinator.beat("new", 2)
    coordinator.heartbeat(member_id, 1)

    coordinator.advance(10)

    assert coordinator.assigned(coordinator.beat("new", 2)) is not None
    assert coordinator.refusal(lambda: coordinator.heartbeat(member_id, 1)) is (
        ErrorCode.unknown_member_id
    )


def test_a_classic_member_that_does_not_sync_in_time_is_removed() -> None:
    coordinator, member_id = upgraded_group()
    coordinator.join(member_id, protocols=owning(), session_ms=100_000, rebalance_ms=20_000)

    coordinator.advance(20_000)

    assert coordinator.refusal(lambda: coordinator.heartbeat(member_id, 2)) is (
        ErrorCode.unknown_member_id
    )


def test_classic_members_leave_a_consumer_group() -> None:
    coordinator, member_id = upgraded_group()

    response = coordinator.leave((member_id, None), ("stranger", None))

    assert [item.error_code for item in response.members] == [
        ErrorCode.none,
        ErrorCode.unknown_member_id,
    ]
    assert coordinator.assigned(coordinator.beat("new", 2)) == {
        ("t", partition) for partition in range(4)
    }


def test_an_operator_removes_members_that_came_by_heartbeat() -> None:
    coordinator = Coordinator()
    coordinator.beat("dynamic")
    coordinator.beat("static", instance="i")

    response = coordinator.leave(("dynamic", None), ("dynamic", None), ("", "i"), ("", "other"))

    assert [item.error_code for item in response.members] == [
        ErrorCode.none,
        ErrorCode.none,
        ErrorCode.none,
        ErrorCode.unknown_member_id,
    ]
    assert group_type(coordinator) == ("consumer", "Empty")


def test_a_static_classic_member_is_replaced_by_a_consumer_member() -> None:
    coordinator = Coordinator()
    reply = coordinator.join(instance="i", protocols=owning())
    coordinator.advance(3_000)
    member_id = reply.value.member_id
    everything = write_assignment(1, {"t": (0, 1, 2, 3)})
    coordinator.sync(member_id, 1, {member_id: everything}, instance="i")

    response = coordinator.beat("new", instance="i")

    assert coordinator.assigned(response) == {("t", partition) for partition in range(4)}
    assert coordinator.refusal(lambda: coordinator.heartbeat(member_id, 1, instance="i")) is (
        ErrorCode.fenced_instance_id
    )
    assert group_type(coordinator) == ("consumer", "Stable")
