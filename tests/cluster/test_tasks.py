"""A short trial of killed workers and brokers; `make faults` runs a long one."""

import random
from pathlib import Path

import pytest
from tests.cluster.faults.tasks import TaskTrial

pytestmark = pytest.mark.process


def test_tasks_run_and_none_again_after_its_acknowledgement(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    trial = TaskTrial(tmp_path, ["dramatiq"], seed, print)
    assert trial.run(4) == []
    assert trial.loads[0].has_begun
