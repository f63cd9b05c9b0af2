"""Properties of every assignment of both assignors."""

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.assignors.range import assign_range
from ottla.groups.assignors.spec import Assignor, GroupSpec, MemberSpec
from ottla.groups.assignors.uniform import assign_uniform
from ottla.groups.partitions import Assignment, TopicIdPartition, all_partitions

A, B, C = (UUID(int=number) for number in (1, 2, 3))


def owned(topic_id: UUID, *partitions: int) -> Assignment:
    return frozenset(TopicIdPartition(topic_id, partition) for partition in partitions)


def spec(
    members: Mapping[str, frozenset[UUID]],
    counts: Mapping[UUID, int],
    previous: Mapping[str, Assignment] | None = None,
) -> GroupSpec:
    return GroupSpec(
        {
            member_id: MemberSpec(topics, (previous or {}).get(member_id, frozenset()))
            for member_id, topics in members.items()
        },
        counts,
    )


def equal(*members: str, counts: Mapping[UUID, int]) -> GroupSpec:
    return spec(dict.fromkeys(members, frozenset(counts)), counts)


def again(group: GroupSpec, previous: Mapping[str, Assignment]) -> GroupSpec:
    return spec(
        {member_id: member.topic_ids for member_id, member in group.members.items()},
        group.partition_counts,
        previous,
    )


def test_range_divides_each_topic() -> None:
    group = equal("m", "n", counts={A: 3, B: 3})

    assert assign_range(group) == {
        "m": owned(A, 0, 1) | owned(B, 0, 1),
        "n": owned(A, 2) | owned(B, 2),
    }


def test_range_gives_nothing_to_members_without_a_partition() -> None:
    assert assign_range(equal("m", "n", "o", counts={A: 2})) == {
        "m": owned(A, 0),
        "n": owned(A, 1),
        "o": frozenset(),
    }


def test_range_orders_static_members_by_instance() -> None:
    group = GroupSpec(
        {
            "m": MemberSpec(frozenset({A}), instance_id="z"),
            "n": MemberSpec(frozenset({A}), instance_id="a"),
        },
        {A: 2},
    )

    assert assign_range(group) == {"n": owned(A, 0), "m": owned(A, 1)}


def test_range_looks_at_subscriptions() -> None:
    group = spec({"m": frozenset({A}), "n": frozenset({A, B})}, {A: 2, B: 1})

    assert assign_range(group) == {"m": owned(A, 0), "n": owned(A, 1) | owned(B, 0)}


def test_uniform_moves_only_what_a_new_member_needs() -> None:
    before = {"m": owned(A, 0, 1, 2), "n": owned(A, 3, 4, 5)}
    group = spec(dict.fromkeys("mno", frozenset({A})), {A: 6}, before)

    after = assign_uniform(group)

    assert after == {"m": owned(A, 0, 1), "n": owned(A, 3, 4), "o": owned(A, 2, 5)}


def test_uniform_gives_what_a_member_left_to_the_others() -> None:
    before = {"m": owned(A, 0, 1), "n": owned(A, 2, 3)}
    group = spec({"m": frozenset({A})}, {A: 4}, before)

    assert assign_uniform(group) == {"m": owned(A, 0, 1, 2, 3)}


def test_uniform_forgets_topics_that_are_gone() -> None:
    group = spec({"m": frozenset({A})}, {A: 1}, {"m": owned(A, 0, 1) | owned(B, 0)})

    assert assign_uniform(group) == {"m": owned(A, 0)}


def test_uniform_with_different_subscriptions() -> None:
    group = spec({"m": frozenset({A}), "n": frozenset({A, B})}, {A: 4, B: 4})

    after = assign_uniform(group)

    assert after == {"m": owned(A, 0, 1, 2, 3), "n": owned(B, 0, 1, 2, 3)}


@pytest.mark.parametrize("assign", [assign_range, assign_uniform])
def test_without_members_or_topics(assign: Assignor) -> None:
    assert assign(GroupSpec({}, {A: 1})) == {}
    assert assign(spec({"m": frozenset()}, {})) == {"m": frozenset()}


_topics = st.fixed_dictionaries({A: st.integers(1, 8), B: st.integers(1, 8), C: st.integers(1, 8)})
_subscriptions = st.dictionaries(
    st.sampled_from("mnopqrs"), st.frozensets(st.sampled_from([A, B, C])), min_size=1
)


@settings(max_examples=100)
@given(_topics, _subscriptions, _subscriptions)
@pytest.mark.parametrize("assign", [assign_range, assign_uniform])
def test_every_partition_goes_to_one_subscriber(
    assign: Assignor,
    counts: dict[UUID, int],
    before: dict[str, frozenset[UUID]],
    after: dict[str, frozenset[UUID]],
) -> None:
    previous = assign(spec(before, counts))
    result = assign(spec(after, counts, previous))

    wanted = frozenset().union(*after.values())
    given_out = [partition for each in result.values() for partition in each]
    assert sorted(given_out) == sorted(
        each for each in all_partitions(counts) if each.topic_id in wanted
    )
    for member_id, assignment in result.items():
        assert {partition.topic_id for partition in assignment} <= after[member_id]


@settings(max_examples=100)
@given(_topics, _subscriptions, _subscriptions)
def test_uniform_is_as_even_as_it_can_be_and_then_stays(
    counts: dict[UUID, int],
    before: dict[str, frozenset[UUID]],
    after: dict[str, frozenset[UUID]],
) -> None:
    group = spec(after, counts, assign_uniform(spec(before, counts)))
    result = assign_uniform(group)

    for member_id, assignment in result.items():
        for partition in assignment:
            for other, topics in after.items():
                if partition.topic_id in topics:
                    assert len(assignment) - len(result[other]) <= 1, (member_id, other)
    assert assign_uniform(again(group, result)) == result


@settings(max_examples=100)
@given(_topics, st.integers(1, 6), st.integers(1, 6))
def test_uniform_moves_no_more_than_needed(
    counts: dict[UUID, int], count_before: int, count_after: int
) -> None:
    topics = frozenset(counts)
    before = assign_uniform(spec(dict.fromkeys("mnopqr"[:count_before], topics), counts))
    after = assign_uniform(spec(dict.fromkeys("mnopqr"[:count_after], topics), counts, before))

    total = sum(counts.values())
    kept = sum(len(after[each] & before.get(each, frozenset())) for each in after)
    share, extra = divmod(total, count_after)
    staying = sorted((len(before[each]) for each in before if each in after), reverse=True)
    possible = sum(min(load, share + (rank < extra)) for rank, load in enumerate(staying))
    assert kept == possible
