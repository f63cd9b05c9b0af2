from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.node.voter_choice import Candidate, should_vote, surplus_voter

A1, A2, A3, B4, B5, C6 = (Candidate(number, rack) for number, rack in enumerate("aaabbc", start=1))


def test_any_node_votes_while_there_are_too_few() -> None:
    assert should_vote(A2, [A1], [A1, A2, B4], 3)


def test_a_node_of_an_empty_rack_votes_too_and_the_full_rack_gives_one_up() -> None:
    nodes = [A1, A2, A3, B4, B5]
    assert should_vote(B4, [A1, A2, A3], nodes, 3)
    assert not should_vote(B5, [A1, A2, A3], nodes, 3)  # One of them is enough.
    assert surplus_voter([A1, A2, A3, B4], 3, 3) == A2
    assert not should_vote(A3, [A1, A2, B4], nodes, 3)


def test_voters_in_different_racks_stay() -> None:
    assert not should_vote(B5, [A1, B4, C6], [A1, B4, B5, C6], 3)
    assert surplus_voter([A1, B4, C6], 1, 3) is None
    assert surplus_voter([A1, B4, C6], 1, 2) is None


def test_another_replaces_a_voter_that_is_drained() -> None:
    leaving = A1._replace(drained=True)
    voters = [leaving, B4, C6]
    candidates = [A2, A3, B4, B5, C6]
    assert [
        candidate for candidate in candidates if should_vote(candidate, voters, candidates, 3)
    ] == [A2]
    assert not should_vote(A3, [*voters, A2], candidates, 3)  # Another has joined already.
    assert surplus_voter([*voters, A2], 4, 3) == leaving
    assert surplus_voter([*voters, A2], 1, 3) == leaving  # Even if it leads.
    assert surplus_voter(voters, 4, 3) is None  # Nobody else is there yet.


def test_nodes_without_racks_are_racks_of_their_own() -> None:
    nodes = [Candidate(number, None) for number in range(1, 6)]
    assert not any(should_vote(node, nodes[:3], nodes, 3) for node in nodes[3:])
    assert surplus_voter(nodes, 1, 3) is None


@settings(max_examples=60)
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), st.sampled_from([1, 3, 5]))
def test_the_voters_come_to_rest_spread_over_the_racks(racks: list[str], quorum_size: int) -> None:
    nodes = [Candidate(number, rack) for number, rack in enumerate(racks)]
    voters = nodes[:1]
    for _ in range(100):
        joining = next(
            (
                candidate
                for candidate in nodes
                if candidate not in voters and should_vote(candidate, voters, nodes, quorum_size)
            ),
            None,
        )
        leaving = surplus_voter(voters, 0, quorum_size)
        if joining is None and leaving is None:
            break
        voters = [*voters, *([joining] if joining else [])]
        voters = [voter for voter in voters if voter != leaving]
    else:
        raise AssertionError(f"the voters do not come to rest: {voters}")
    assert len(voters) == min(quorum_size, len(nodes))
    counts = [sum(voter.rack == rack for voter in voters) for rack in set(racks)]
    assert len([count for count in counts if count]) == min(len(voters), len(set(racks)))
