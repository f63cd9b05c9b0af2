"""The simple assignor: every member has partitions, and loads are even."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.assignors.simple import assign_simple
from ottla.groups.assignors.spec import GroupSpec, MemberSpec
from ottla.groups.partitions import TopicIdPartition, all_partitions

COUNTS = st.dictionaries(st.integers(1, 3).map(lambda number: UUID(int=number)), st.integers(1, 6))


def members(
    names: set[str], topics: frozenset[UUID], previous: dict[str, frozenset[TopicIdPartition]]
) -> dict[str, MemberSpec]:
    return {name: MemberSpec(topics, previous.get(name, frozenset())) for name in names}


@given(counts=COUNTS, steps=st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=1), max_size=4))
def test_equal_subscriptions(counts: dict[UUID, int], steps: list[set[str]]) -> None:
    partitions = list(all_partitions(counts))
    previous: dict[str, frozenset[TopicIdPartition]] = {}
    for names in steps:
        spec = GroupSpec(members(names, frozenset(counts), previous), {})
        previous = assign_simple(spec, partitions)

        assert previous.keys() == names
        if not partitions:
            continue
        assert frozenset().union(*previous.values()) == frozenset(partitions)
        loads = [len(owned) for owned in previous.values()]
        assert min(loads) >= 1
        assert max(loads) <= -(-len(partitions) // len(names))
        assert (
            assign_simple(GroupSpec(members(names, frozenset(counts), previous), {}), partitions)
            == previous
        )


@given(
    counts=COUNTS,
    subscriptions=st.dictionaries(
        st.sampled_from("abcde"),
        st.frozensets(st.integers(1, 4).map(lambda number: UUID(int=number))),
    ),
)
def test_different_subscriptions(
    counts: dict[UUID, int], subscriptions: dict[str, frozenset[UUID]]
) -> None:
    spec = GroupSpec({name: MemberSpec(topics) for name, topics in subscriptions.items()}, {})
    partitions = list(all_partitions(counts))

    assignment = assign_simple(spec, partitions)

    for name, owned in assignment.items():
        assert {partition.topic_id for partition in owned} <= subscriptions[name]
        assert bool(owned) == bool(subscriptions[name] & counts.keys())
    wanted = frozenset().union(*subscriptions.values())
    covered = frozenset().union(*assignment.values())
    assert covered == {partition for partition in partitions if partition.topic_id in wanted}
