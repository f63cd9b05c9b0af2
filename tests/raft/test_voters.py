from uuid import UUID

from ottla.raft.voters import Endpoint, ReplicaKey, Voter, VoterHistory, VoterSet


def key(number: int) -> ReplicaKey:
    return ReplicaKey(number, UUID(int=number))


def voters(*ids: int) -> VoterSet:
    return VoterSet.of(Voter(key(number)) for number in ids)


def test_a_node_with_another_disk_is_not_the_voter() -> None:
    assert key(1) in voters(1, 2)
    assert ReplicaKey(1, UUID(int=99)) not in voters(1, 2)
    assert ReplicaKey(1, UUID(int=99)) in VoterSet.of([Voter(ReplicaKey(1))])


def test_majorities() -> None:
    assert [voters(*range(count)).majority for count in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]


def test_changes_leave_the_set_as_it_was() -> None:
    before = voters(1, 2)
    endpoint = Endpoint("CONTROLLER", "host", 1)

    assert before.with_voter(Voter(key(3))) == voters(1, 2, 3)
    assert before.without_voter(key(1)) == voters(2)
    assert before.with_voter(Voter(key(2), (endpoint,))).voter(2) == Voter(key(2), (endpoint,))
    assert before == voters(1, 2)


def test_history_follows_the_log() -> None:
    history = VoterHistory(voters(1))
    assert history.latest == voters(1)
    assert history.latest_offset is None

    history.add(2, voters(1, 2))
    history.add(5, voters(1, 2, 3))
    assert history.latest == voters(1, 2, 3)
    assert history.at(5) == voters(1, 2)
    assert history.at(2) == voters(1)

    history.truncate_to(5)
    assert history.latest == voters(1, 2)
    history.truncate_to(0)
    assert history.latest == voters(1)


def test_what_a_truncation_can_bring_back() -> None:
    history = VoterHistory(voters(1))
    history.add(2, voters(1, 2))
    history.add(5, voters(2))

    assert history.possible(2) == [voters(2), voters(1, 2), voters(1)]
    assert history.possible(3) == [voters(2), voters(1, 2)]
    assert history.possible(6) == [voters(2)]


def test_committed_history_is_forgotten() -> None:
    history = VoterHistory(voters(1))
    history.add(2, voters(1, 2))
    history.add(5, voters(2))

    history.forget_before(5)
    assert history.at(4) == voters(1, 2)
    history.forget_before(6)
    assert history.latest == voters(2)
    assert history.possible(6) == [voters(2)]


def test_a_snapshot_replaces_all() -> None:
    history = VoterHistory(voters(1))
    history.add(2, voters(1, 2))

    history.start_from_snapshot(10, voters(2, 3))

    assert history.latest == voters(2, 3)
    assert history.latest_offset == 9
    assert history.at(10) == voters(2, 3)
