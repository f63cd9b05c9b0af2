from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies._internal.core import DataObject
from kio.schema.types import BrokerId

from ottla.controller.placement import Candidate, place_replicas, validate_manual
from ottla.protocol.errors import ApiError, ErrorCode


def brokers(
    count: int, racks: list[str] | None = None, fenced: tuple[()] | set[int] = ()
) -> list[Candidate]:
    return [
        Candidate(
            BrokerId(number), racks[number % len(racks)] if racks else None, number not in fenced
        )
        for number in range(1, count + 1)
    ]


def test_one_broker_takes_everything() -> None:
    assert place_replicas(brokers(1), 3, 1, start=0) == [(1,), (1,), (1,)]


def test_leaders_and_followers_take_turns() -> None:
    assert place_replicas(brokers(3), 6, 2, start=0) == [
        (1, 2),
        (2, 3),
        (3, 1),
        (1, 3),
        (2, 1),
        (3, 2),
    ]


def test_the_start_moves_the_first_leader() -> None:
    assert [replicas[0] for replicas in place_replicas(brokers(3), 3, 1, start=2)] == [3, 1, 2]


def test_replicas_are_on_different_racks() -> None:
    racks = {1: "b", 2: "a", 3: "b", 4: "a"}
    placed = place_replicas(brokers(4, ["a", "b"]), 8, 2, start=1)
    assert all(racks[leader] != racks[follower] for leader, follower in placed)
    assert Counter(replica for replicas in placed for replica in replicas) == dict.fromkeys(
        racks, 4
    )


def test_a_fenced_broker_is_used_only_when_it_is_needed_and_never_leads() -> None:
    assert place_replicas(brokers(3, fenced={2}), 2, 2, start=0) == [(1, 3), (3, 1)]
    placed = place_replicas(brokers(3, fenced={2}), 3, 3, start=0)
    assert [replicas[0] for replicas in placed] == [1, 3, 1]
    assert all(set(replicas) == {1, 2, 3} for replicas in placed)


@pytest.mark.parametrize(
    ("known", "factor", "message"),
    [
        (brokers(2), 3, "2 are registered"),
        ([], 1, "0 are registered"),
        (brokers(1, fenced={1}), 1, "no broker is active"),
    ],
)
def test_a_factor_that_cannot_be_reached_is_refused(
    known: list[Candidate], factor: int, message: str
) -> None:
    with pytest.raises(ApiError, match=message) as caught:
        place_replicas(known, 1, factor, start=0)
    assert caught.value.code is ErrorCode.invalid_replication_factor


@settings(max_examples=60)
@given(st.data())
def test_placement_is_even(data: DataObject) -> None:
    count = data.draw(st.integers(1, 7))
    racks = data.draw(st.sampled_from([None, ["a"], ["a", "b"], ["a", "b", "c"]]))
    factor = data.draw(st.integers(1, count))
    known = brokers(count, racks)
    placed = place_replicas(
        known, data.draw(st.integers(1, 30)), factor, data.draw(st.integers(0, 9))
    )
    leaders = Counter(replicas[0] for replicas in placed)
    tally = [leaders[broker.broker_id] for broker in known]
    assert max(tally) - min(tally) <= 1
    rack_of = {broker.broker_id: broker.rack for broker in known}
    for replicas in placed:
        assert len(set(replicas)) == factor
        if racks and len({*rack_of.values()}) >= factor:
            assert len({rack_of[replica] for replica in replicas}) == factor


@pytest.mark.parametrize(
    ("replicas", "factor", "message"),
    [
        ((), None, "an empty replica list"),
        ((1, 1), None, "includes the broker 1 more than once"),
        ((1, 9), None, "broker 9, but no such broker is registered"),
        ((1,), 2, r"1 replica\(s\), but this is not consistent with previous partitions"),
        ((2,), None, "fenced or in controlled shutdown: 2"),
    ],
)
def test_bad_manual_assignments_are_refused(
    replicas: tuple[int, ...], factor: int | None, message: str
) -> None:
    with pytest.raises(ApiError, match=message) as caught:
        validate_manual(replicas, brokers(3, fenced={2}), factor)
    assert caught.value.code is ErrorCode.invalid_replica_assignment


def test_a_manual_assignment_may_have_a_fenced_follower() -> None:
    validate_manual((1, 2), brokers(3, fenced={2}), 2)


def cordoned(known: list[Candidate], *ids: int) -> list[Candidate]:
    return [candidate._replace(cordoned=candidate.broker_id in ids) for candidate in known]


def test_a_cordoned_broker_gets_nothing_new() -> None:
    assert place_replicas(cordoned(brokers(3), 2), 2, 2, start=0) == [(1, 3), (3, 1)]
    with pytest.raises(ApiError, match="2 are registered and not drained"):
        place_replicas(cordoned(brokers(3), 2), 1, 3, start=0)


def test_a_cordoned_broker_keeps_what_it_has() -> None:
    known = cordoned(brokers(3), 2)
    validate_manual((2, 3), known, None, present=(1, 2))
    with pytest.raises(ApiError, match="includes broker 2, but it is drained"):
        validate_manual((2, 3), known, None, present=(1, 3))
