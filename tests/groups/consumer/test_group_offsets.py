"""Offsets of consumer groups, and group descriptions."""

from tests.groups.consumer.kit import describe
from tests.groups.kit import ALL_GROUPS, CALLER, Coordinator

from ottla.protocol.errors import ErrorCode


def test_members_commit_and_fetch_with_their_epoch() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    def commit(member_id: str, epoch: int, version: int = 9) -> ErrorCode:
        return coordinator.refusal(
            lambda: coordinator.commit(
                {("t", 0): 1}, member_id=member_id, generation=epoch, version=version
            )
        )

    assert commit("m", 3) is ErrorCode.stale_member_epoch
    assert commit("m", 2, version=8) is ErrorCode.unsupported_version
    assert commit("n", 2) is ErrorCode.unknown_member_id
    assert commit("", -1) is ErrorCode.unknown_member_id
    coordinator.commit({("t", 0): 7}, member_id="m", generation=2)
    assert coordinator.offsets() == {("t", 0): 7}
    stale = coordinator.fetch(("t", 0), member_id="m", member_epoch=0)
    assert stale.error_code is ErrorCode.stale_member_epoch
    assert coordinator.fetch(("t", 0), member_id="n", member_epoch=2).error_code is (
        ErrorCode.unknown_member_id
    )
    good = coordinator.fetch(("t", 0), member_id="m", member_epoch=2)
    assert good.topics[0].partitions[0].committed_offset == 7


def test_a_commit_that_the_next_epoch_has_overtaken_counts_for_what_was_kept() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")
    coordinator.beat("m", 2)
    coordinator.beat("m", 2, owned={("t", 0), ("t", 1)})
    coordinator.beat("n", 3)

    def refusal(member_id: str, epoch: int, *partitions: int) -> ErrorCode:
        offsets = {("t", partition): 1 for partition in partitions}
        return coordinator.refusal(
            lambda: coordinator.commit(offsets, member_id=member_id, generation=epoch)
        )

    coordinator.commit({("t", 0): 7, ("t", 1): 8}, member_id="m", generation=2)
    assert coordinator.offsets() == {("t", 0): 7, ("t", 1): 8}
    assert refusal("m", 2, 0, 2) is ErrorCode.stale_member_epoch
    assert refusal("m", 0, 0) is ErrorCode.stale_member_epoch
    assert refusal("m", 4, 0) is ErrorCode.stale_member_epoch
    assert refusal("n", 2, 2) is ErrorCode.stale_member_epoch


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.commit({("t", 0): 7}, member_id="m", generation=2)

    def delete() -> ErrorCode:
        results = coordinator.run(lambda _: coordinator.machine.delete_groups(["g"])).value
        code: ErrorCode = results[0].error_code
        return code

    assert delete() is ErrorCode.non_empty_group
    coordinator.beat("m", -1)
    assert delete() is ErrorCode.none
    assert describe(coordinator).error_code is ErrorCode.group_id_not_found
    assert coordinator.offsets() == {}
    coordinator.reload()
    assert coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value == ()


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    coordinator = Coordinator(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=500)
    coordinator.beat("m")
    coordinator.commit({("t", 0): 7, ("u", 0): 8}, member_id="m", generation=2)

    coordinator.advance(5_000)

    assert coordinator.offsets() == {("t", 0): 7}


def test_how_a_consumer_group_is_shown() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    (listed,) = coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value
    assert (listed.group_type, listed.group_state, listed.protocol_type) == (
        "consumer",
        "Stable",
        "consumer",
    )
    (classic,) = coordinator.run(lambda _: coordinator.machine.describe_groups(["g"], CALLER)).value
    assert (classic.error_code, classic.error_message) == (
        ErrorCode.group_id_not_found,
        "Group g is not a classic group.",
    )
    member = describe(coordinator).members[0]
    assert (member.member_epoch, member.member_type, member.client_host) == (2, 1, "/host")
    assert member.assignment == member.target_assignment
    assert member.assignment.topic_partitions[0].topic_name == "t"
