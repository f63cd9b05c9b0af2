"""A short trial of killed gateways and brokers; `make faults` runs a long one."""

import random
from pathlib import Path

import pytest
from tests.cluster.faults.gateway import GatewayTrial, Pace

pytestmark = pytest.mark.process


def test_queues_keep_their_word_when_gateways_and_brokers_are_killed(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    pace = Pace(gateways=2, lock_s=3.0, delay_ms_max=1_000)
    trial = GatewayTrial(tmp_path, seed, print, pace)
    assert trial.run(4) == []
    assert trial.history.acked
