import random

import pytest
from tests.raft.cluster import Cluster

SEEDS_PER_TEST = 20
FIXED = range(0, 200, SEEDS_PER_TEST)


def run(seed: int) -> Cluster:
    cluster = Cluster(seed)
    try:
        cluster.run()
    except AssertionError as error:
        error.add_note(f"repeat with: PYTHONPATH=src python -m tests.raft.simulate {seed}")
        raise
    return cluster


@pytest.mark.parametrize("first", FIXED)
def test_promises_hold_under_faults(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        run(seed)


def test_promises_hold_under_faults_not_seen_before() -> None:
    for _ in range(SEEDS_PER_TEST):
        run(random.SystemRandom().randrange(1_000_000_000))


def test_a_run_follows_from_its_seed() -> None:
    assert run(7).lines == run(7).lines


def test_the_runs_meet_what_they_are_made_for() -> None:
    trace = "\n".join(line for seed in range(20) for line in run(seed).lines)

    for happening in (
        "crashes",
        "pauses",
        "partition",
        "truncates",
        "installs snapshot",
        "resigned",
        "Voter",
    ):
        assert happening in trace
