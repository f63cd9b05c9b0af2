"""A short trial of each fault with real processes; `make faults` runs long ones."""

from pathlib import Path

import pytest
from tests.cluster.faults.trial import Trial

pytestmark = pytest.mark.process


@pytest.mark.parametrize(("nodes", "seed"), [(3, 1), (5, 2)])
def test_what_was_acknowledged_is_kept_whatever_happens(
    tmp_path: Path, nodes: int, seed: int
) -> None:
    outcome = Trial(tmp_path, seed, nodes=nodes, say=print).run(seconds=15)
    assert outcome.acked_count > 0
    assert not outcome.findings, str(outcome)
