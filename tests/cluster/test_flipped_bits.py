"""Flipped bits in a few kinds of files, with real processes; `make faults` flips all of them."""

from pathlib import Path

import pytest
from tests.cluster.faults.flipped_bits import run

pytestmark = pytest.mark.process


@pytest.mark.parametrize(("nodes", "ending"), [(1, "stop"), (3, "kill")])
def test_nobody_gets_a_wrong_byte(tmp_path: Path, nodes: int, ending: str) -> None:
    topics = ["payload", "base-offset-up", "timeindex", "untouched"]
    assert run(tmp_path, nodes, ending, topics, print) == []
