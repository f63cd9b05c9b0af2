"""Runs of whole clusters, in processes of their own, where string hashes are fixed."""

import os
import random
import subprocess
import sys

import pytest

from ottla.testing.simulator.plants import PLANTS

# Takes minutes on a busy machine.
pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(3_600)]

FRESH_SEEDS_COUNT = 8

SEEDS_THAT_FAILED = (
    747394306,  # A voter was stopped while the quorum was too small to do without it.
    747394346,  # An index was longer than its segment, which a truncation had emptied.
    747394590,  # The disk failed when the quorum restarted after the disk had been full.
    747394962,  # A replaced leader reported a gap to an idempotent producer.
    747394713,  # A checker considered records written that waited for a slow disk.
    394585661,  # A node did not start because its epoch checkpoint was behind its log.
)
LONG_SEEDS_THAT_FAILED = (
    490293431,  # A follower truncated its log twice, the second time after it had fetched again.
    763264947,  # A simulated producer paused for longer than the run waits.
    714018544,  # A quorum that restarted after a failed sync forgot committed records.
)
QUEUE_SEEDS_THAT_FAILED = (
    777012,  # A checker did not wait for a record held by a clock 43 s ahead.
    5100026,  # A share-partition change was accepted although the previous one was lost.
)
ORDERED_QUEUE_SEED_THAT_FAILED = 9100  # Workers drained a group of four keys too slowly to finish.
PLANT_SEEDS_COUNT_MAX = 100
SECONDS_TO_COMPARE = 10

# Seeds that find each soon; after changes elsewhere, try the following seeds.
SEEDS_OF_PLANTS = {
    "ack-before-commit": 0,
    "truncate-by-high-watermark": 0,
    "vote-twice": 80,
    "vote-without-sync": 0,
    "commit-offsets-before-replication": 2,
    "repair-in-sync": 0,
    "forget-parked": 0,
    "forget-keys": 0,
    "write-after-a-lost-write": 0,
    "hold-failures": 0,
    "log-every-attempt": 0,
}

# After a run of another seed in a forked process, as in a run of many.
WARM = """
import sys
from ottla.testing.simulator.runner import Variant, run_seeds
variant = Variant(duration=float(sys.argv[2]))
(outcome,) = run_seeds(iter([int(sys.argv[1])]), 1, variant)
print(outcome.digest)
"""


def simulate(*arguments: object) -> str:
    return run("-m", "ottla.testing.simulator", *arguments)


def run(*arguments: object) -> str:
    done = begin(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def begin(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": "src", "PYTHONHASHSEED": "0"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_promises_hold_when_bits_flip_on_disks() -> None:
    summary = simulate("--first", 3, "--count", 4, "--jobs", 2, "--fault", "flip_bits")
    assert "flip_bits" in summary


@pytest.mark.parametrize("seed", SEEDS_THAT_FAILED)
def test_a_seed_that_failed_once_passes(seed: int) -> None:
    simulate("--seed", seed)


@pytest.mark.parametrize("seed", LONG_SEEDS_THAT_FAILED)
def test_a_seed_that_failed_once_in_two_minutes_passes(seed: int) -> None:
    simulate("--seed", seed, "--duration", 120)


@pytest.mark.parametrize("seed", QUEUE_SEEDS_THAT_FAILED)
def test_a_seed_that_failed_once_with_workers_of_a_queue_passes(seed: int) -> None:
    simulate("--seed", seed, "--queue-workers", 2)


def test_a_seed_that_failed_once_with_workers_of_an_ordered_queue_passes() -> None:
    queue = ("--queue-workers", 2, "--queue-order", "--fault", "clock_jump")
    simulate("--seed", ORDERED_QUEUE_SEED_THAT_FAILED, *queue, "--duration", 60)


@pytest.mark.parametrize("absent_count", [1, 2])
def test_time_without_nodes_costs_the_others_no_memory(absent_count: int) -> None:
    simulate("--seed", 1, "--absent", absent_count, "--quiet")


def test_promises_hold_under_faults_not_seen_before() -> None:
    first = random.SystemRandom().randrange(1_000_000_000)
    simulate("--first", first, "--count", FRESH_SEEDS_COUNT, "--jobs", 2)


def test_a_run_follows_from_its_seed() -> None:
    trace = simulate("--seed", 7, "--duration", SECONDS_TO_COMPARE)
    assert trace == simulate("--seed", 7, "--duration", SECONDS_TO_COMPARE)
    assert trace.split()[-1] == run("-c", WARM, 7, SECONDS_TO_COMPARE).strip()


@pytest.mark.parametrize(("plant", "first"), SEEDS_OF_PLANTS.items())
def test_a_planted_bug_is_found(plant: str, first: int) -> None:
    seeds = ("--first", first, "--count", PLANT_SEEDS_COUNT_MAX, "--until-failure")
    done = begin("-m", "ottla.testing.simulator", "--plant", plant, *seeds, "--jobs", 1)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "failed: Violation" in done.stdout or "failed: Stalled" in done.stdout


def test_every_planted_bug_has_its_test() -> None:
    assert SEEDS_OF_PLANTS.keys() == PLANTS.keys()


def test_no_seed_is_begun_when_the_time_is_over() -> None:
    summary = simulate("--count", 1_000, "--seconds", 0)
    assert summary.startswith("seeds: 0 run")
