"""A short trial of each fault with real processes; `make faults` runs long ones."""

import random
from pathlib import Path

import pytest
from tests.cluster.faults.locks import ClientsBy
from tests.cluster.faults.trial import Trial

pytestmark = pytest.mark.process


@pytest.mark.parametrize(("nodes", "seconds"), [(3, 12), (5, 8)])
def test_what_was_acknowledged_is_kept_whatever_happens(
    tmp_path: Path, nodes: int, seconds: float
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    outcome = Trial(tmp_path, seed, nodes=nodes, copiers=2, say=print).run(seconds)
    assert outcome.acked_count > 0
    assert not outcome.findings, str(outcome)


@pytest.mark.parametrize("by", ClientsBy)
def test_what_was_acknowledged_is_kept_with_certificates_logins_and_acls(
    tmp_path: Path, by: ClientsBy
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    outcome = Trial(tmp_path, seed, copiers=1, locked=by, say=print).run(8)
    assert outcome.acked_count > 0
    assert outcome.refused_count > 0
    assert not outcome.findings, str(outcome)
