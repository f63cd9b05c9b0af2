"""A short trial of stalled connections; `make faults` runs long ones."""

from pathlib import Path

import pytest
from tests.cluster.faults.stalled import Stalled, attacks

pytestmark = pytest.mark.process


def test_nobodys_answer_is_missing_while_connections_stall(tmp_path: Path) -> None:
    bounds = ("--set", "queued.max.request.bytes=16000000")
    outcome = Stalled(tmp_path, *bounds, say=print).run(attacks(8_000_000, 40), seconds=0.5)
    assert outcome.acked_count > 0
    assert not outcome.findings, str(outcome)
