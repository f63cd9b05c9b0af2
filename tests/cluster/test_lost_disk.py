"""Short trials of lost disks and flipped bits; `make faults` runs the long ones."""

import random
from pathlib import Path

import pytest
from tests.cluster.faults.flipped_metadata import METADATA, repair_voters, run_flips
from tests.cluster.faults.lost_disk import run_lost_disk

pytestmark = pytest.mark.process


def test_a_first_node_without_its_disk_begins_no_second_cluster(tmp_path: Path) -> None:
    outcome = run_lost_disk(tmp_path, ["missing"], say=print)
    assert outcome.acked_count > 0
    assert not outcome.findings, str(outcome)


def test_a_flipped_bit_in_the_metadata_log_costs_nothing_that_it_had(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    kind = f"{METADATA}/*.log"
    outcome = run_flips(tmp_path, random.Random(seed), 1, (kind,), say=print)
    assert not outcome.findings, str(outcome)
    assert {key[0] for key in outcome.counts} == {"stop", "kill"}


def test_a_voter_with_damaged_metadata_is_repaired_by_the_others(tmp_path: Path) -> None:
    assert not repair_voters(tmp_path, random.Random(1), (1,), say=print)
