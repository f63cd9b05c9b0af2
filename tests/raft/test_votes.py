import pytest

from ottla.raft.log import OffsetAndEpoch
from ottla.raft.states import (
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Unattached,
)
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.raft.votes import grants_pre_vote, grants_vote, is_up_to_date

ONE, TWO = ReplicaKey(1), ReplicaKey(2)
BALLOT = Ballot(VoterSet.of([Voter(ONE), Voter(TWO), Voter(ReplicaKey(3))]))


def unattached(**rest: object) -> Unattached:
    return Unattached(epoch=5, election_deadline_ms=0, **rest)  # type: ignore[arg-type]


def follower(*, has_fetched: bool) -> Follower:
    return Follower(
        epoch=5, leader_id=9, leader_endpoints=(), fetch_deadline_ms=0, has_fetched=has_fetched
    )


def leader() -> Leader:
    return Leader(
        epoch=5,
        leader_id=1,
        voted=ONE,
        epoch_start_offset=0,
        check_quorum_deadline_ms=0,
        begin_epoch_deadline_ms=0,
    )


def candidate() -> Candidate:
    return Candidate(epoch=5, election_deadline_ms=0, ballot=BALLOT, voted=ONE)


def prospective(**rest: object) -> Prospective:
    return Prospective(epoch=5, election_deadline_ms=0, ballot=BALLOT, **rest)  # type: ignore[arg-type]


def resigned() -> Resigned:
    return Resigned(epoch=5, leader_id=1, voted=ONE, election_deadline_ms=0)


@pytest.mark.parametrize(
    ("state", "pre_vote", "vote"),
    [
        (unattached(), True, True),
        (unattached(voted=ONE), True, False),
        (unattached(voted=TWO), True, True),
        (unattached(leader_id=9), True, False),
        (prospective(), True, True),
        (prospective(voted=ONE), True, False),
        (prospective(leader_id=9), True, False),
        (follower(has_fetched=False), True, False),
        (follower(has_fetched=True), False, False),
        (candidate(), True, False),
        (leader(), False, False),
        (resigned(), True, False),
    ],
    ids=repr,
)
def test_what_node_two_is_granted(state: State, pre_vote: bool, vote: bool) -> None:
    assert grants_pre_vote(state, up_to_date=True) == pre_vote
    assert grants_vote(state, TWO, up_to_date=True) == vote


def test_a_shorter_log_is_granted_nothing() -> None:
    assert not grants_pre_vote(unattached(), up_to_date=False)
    assert not grants_vote(unattached(), TWO, up_to_date=False)


@pytest.mark.parametrize(
    ("log", "is_enough"),
    [((9, 3), True), ((10, 3), True), ((8, 3), False), ((1, 4), True), ((99, 2), False)],
)
def test_the_epoch_counts_before_the_offset(log: tuple[int, int], is_enough: bool) -> None:
    assert is_up_to_date(OffsetAndEpoch(*log), OffsetAndEpoch(9, 3)) == is_enough


def test_ballot_of_three() -> None:
    ballot = Ballot(BALLOT.voters)

    ballot.record(1, granted=True)
    ballot.record(4, granted=True)
    assert not ballot.is_won
    ballot.record(2, granted=False)
    ballot.record(2, granted=True)
    assert not ballot.is_won
    assert not ballot.is_lost
    ballot.record(3, granted=False)
    assert ballot.is_lost
