"""The checkers find each planted bug within 200 seeds."""

import pytest
from tests.raft.cluster import Cluster
from tests.raft.planted_bugs import BUGS, Bug
from tests.raft.violation import Violation

SEEDS_MAX = 200


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    for target, name, replacement in bug.patches:
        monkeypatch.setattr(target, name, replacement)

    assert any(_breaks_a_promise(bug, seed) for seed in range(SEEDS_MAX))


def _breaks_a_promise(bug: Bug, seed: int) -> bool:
    """A checker must find it; an assertion of the core does not count."""
    cluster = Cluster(seed, faults=bug.faults, replica_type=bug.replica_type)
    try:
        cluster.run()
    except Violation:
        return True
    except AssertionError:
        return False
    return False
