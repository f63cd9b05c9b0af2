"""The least loaded subscriber, compared with a search of all members."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.assignors.least_loaded import LeastLoaded
from ottla.groups.assignors.spec import MemberSpec
from ottla.groups.partitions import TopicIdPartition

TOPICS = [UUID(int=number) for number in (1, 2, 3)]

subscriptions = st.dictionaries(
    st.sampled_from("abcde"), st.frozensets(st.sampled_from(TOPICS)), min_size=1
)
changes = st.lists(st.tuples(st.booleans(), st.sampled_from(TOPICS), st.integers(0, 4)))


@given(subscriptions, changes)
def test_it_is_the_one_that_has_the_fewest(
    wanted: dict[str, frozenset[UUID]], steps: list[tuple[bool, UUID, int]]
) -> None:
    members = {member_id: MemberSpec(topics) for member_id, topics in wanted.items()}
    owned: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in members}
    least = LeastLoaded(members, owned)

    for number, (gives, topic_id, index) in enumerate(steps):
        subscribers = [member_id for member_id in sorted(wanted) if topic_id in wanted[member_id]]
        assert (least.subscriber_count(topic_id) > 0) == bool(subscribers)
        if not subscribers:
            continue
        expected = min(subscribers, key=lambda each: (len(owned[each]), each))
        assert least.subscriber(topic_id) == expected
        if gives:
            owned[expected].add(TopicIdPartition(topic_id, number))
        else:
            loser = subscribers[index % len(subscribers)]
            if owned[loser]:
                owned[loser].pop()
                least.on_fewer(loser)
