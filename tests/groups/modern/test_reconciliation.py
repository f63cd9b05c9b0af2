"""Each step of a member towards its target."""

from uuid import UUID

from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.modern.reconciliation import MemberState, reconcile
from ottla.groups.partitions import NOTHING, Assignment, TopicIdPartition

TOPIC = UUID(int=1)


def parts(*partitions: int) -> Assignment:
    return frozenset(TopicIdPartition(TOPIC, partition) for partition in partitions)


def member(
    state: MemberState = MemberState.STABLE,
    *,
    epoch: int = 10,
    assigned: Assignment = NOTHING,
    pending: Assignment = NOTHING,
) -> ConsumerMember:
    return ConsumerMember(
        member_id="m",
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        assigned=assigned,
        pending_revocation=pending,
    )


def step(
    before: ConsumerMember,
    target: Assignment,
    *,
    target_epoch: int = 12,
    owned: Assignment | None = None,
    held: Assignment = NOTHING,
) -> tuple[MemberState, int, int, Assignment, Assignment]:
    after = reconcile(before, target_epoch, target, owned, lambda wanted: wanted - held)
    return (
        after.state,
        after.epoch,
        after.previous_epoch,
        after.assigned,
        after.pending_revocation,
    )


def test_a_member_at_its_target_stays() -> None:
    before = member(assigned=parts(1))

    assert step(before, parts(1), target_epoch=10) == (
        MemberState.STABLE,
        10,
        9,
        parts(1),
        NOTHING,
    )


def test_the_same_assignment_at_a_new_epoch() -> None:
    before = member(assigned=parts(1))

    assert step(before, parts(1)) == (MemberState.STABLE, 12, 10, parts(1), NOTHING)


def test_free_partitions_are_taken_at_once() -> None:
    before = member(assigned=parts(1))

    assert step(before, parts(1, 2)) == (MemberState.STABLE, 12, 10, parts(1, 2), NOTHING)


def test_partitions_of_others_are_waited_for() -> None:
    before = member(assigned=parts(1))

    assert step(before, parts(1, 2, 3), held=parts(3)) == (
        MemberState.UNRELEASED,
        12,
        10,
        parts(1, 2),
        NOTHING,
    )


def test_revocation_comes_before_anything_else() -> None:
    before = member(assigned=parts(1, 2))

    assert step(before, parts(2, 3)) == (
        MemberState.UNREVOKED,
        10,
        10,
        parts(2),
        parts(1),
    )


def test_what_the_member_does_not_own_need_not_be_revoked() -> None:
    before = member(assigned=parts(1, 2))

    assert step(before, parts(2, 3), owned=parts(2)) == (
        MemberState.STABLE,
        12,
        10,
        parts(2, 3),
        NOTHING,
    )


def test_revocation_ends_when_the_member_says_so() -> None:
    before = member(MemberState.UNREVOKED, assigned=parts(2), pending=parts(1))

    unchanged = (MemberState.UNREVOKED, 10, 9, parts(2), parts(1))
    assert step(before, parts(2, 3)) == unchanged
    assert step(before, parts(2, 3), owned=parts(1, 2)) == unchanged
    assert step(before, parts(2, 3), owned=parts(2)) == (
        MemberState.STABLE,
        12,
        10,
        parts(2, 3),
        NOTHING,
    )


def test_a_newer_target_may_take_more_away() -> None:
    before = member(MemberState.UNREVOKED, assigned=parts(2, 3), pending=parts(1))

    assert step(before, parts(3), owned=parts(2, 3)) == (
        MemberState.UNREVOKED,
        10,
        10,
        parts(3),
        parts(2),
    )


def test_a_member_remembers_since_when_it_has_what_it_keeps() -> None:
    def moved(before: ConsumerMember, target: Assignment, epoch: int) -> ConsumerMember:
        return reconcile(before, epoch, target, target, lambda wanted: wanted)

    first = moved(member(epoch=0), parts(1, 2), 5)
    second = moved(first, parts(2, 3), 6)
    third = moved(second, parts(2, 3, 4), 7)

    assert dict(first.older_epochs) == {}
    assert second.older_epochs == dict.fromkeys(parts(2), 5)
    assert third.older_epochs == {**dict.fromkeys(parts(2), 5), **dict.fromkeys(parts(3), 6)}
    assert third.has_had_since(5, parts(2))
    assert not third.has_had_since(5, parts(2, 3))
    assert third.has_had_since(6, parts(2, 3))
    assert not third.has_had_since(6, parts(4))
    assert third.has_had_since(7, parts(4))
    assert not third.has_had_since(7, parts(1))
    kept = third.with_assignment(third.assignment())
    assert kept == third


def test_a_waiting_member_gets_what_was_released() -> None:
    before = member(MemberState.UNRELEASED, epoch=12, assigned=parts(1))

    assert step(before, parts(1, 2), held=parts(2))[0] is MemberState.UNRELEASED
    assert step(before, parts(1, 2)) == (MemberState.STABLE, 12, 12, parts(1, 2), NOTHING)


def test_a_waiting_member_for_which_nothing_changed_is_the_same() -> None:
    before = member(MemberState.UNRELEASED, epoch=12, assigned=parts(1))

    assert step(before, parts(1, 2), held=parts(2)) == (
        MemberState.UNRELEASED,
        12,
        11,
        parts(1),
        NOTHING,
    )
