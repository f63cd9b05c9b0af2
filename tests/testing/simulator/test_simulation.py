"""Runs of whole clusters, in processes of their own, where the hashes of text are the same."""

import os
import random
import subprocess
import sys

import pytest

FIXED_SEEDS_PER_TEST = 8
FRESH_SEEDS_COUNT = 8

# After a run of another seed, as when many are run, in a process that is forked.
WARM = """
import sys
from ottla.testing.simulator.runner import run_seeds
(outcome,) = run_seeds(iter([int(sys.argv[1])]), 1)
print(outcome.digest)
"""


def simulate(*arguments: object) -> str:
    return run("-m", "ottla.testing.simulator", *arguments)


def run(*arguments: object) -> str:
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": "src", "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("first", range(0, 16, FIXED_SEEDS_PER_TEST))
def test_promises_hold_under_faults(first: int) -> None:
    simulate("--first", first, "--count", FIXED_SEEDS_PER_TEST, "--jobs", 2)


def test_promises_hold_under_faults_not_seen_before() -> None:
    first = random.SystemRandom().randrange(1_000_000_000)
    simulate("--first", first, "--count", FRESH_SEEDS_COUNT, "--jobs", 2)


def test_a_run_follows_from_its_seed() -> None:
    trace = simulate("--seed", 7)
    assert trace == simulate("--seed", 7)
    assert trace.split()[-1] == run("-c", WARM, 7).strip()
