import os
import pty
import subprocess
import sys

import pytest
from tests.cli.command import environment

from ottla.cli.output import format_cell, print_rows


def test_plain_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"topic": "orders", "isr": [1, 2]}, {"topic": "a", "isr": []}]
    print_rows(("topic", "isr"), rows)
    assert capsys.readouterr().out == "TOPIC   ISR\norders  1,2\na\n"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (True, "yes"), (False, "no"), (0, "0"), ([1, 2], "1,2")]
)
def test_cells(value: object, text: str) -> None:
    assert format_cell(value) == text


def test_a_terminal_gets_a_drawn_table() -> None:
    script = (
        "from ottla.cli.output import print_rows;"
        "print_rows(('topic', 'start_offset'), [{'topic': '[b]orders', 'start_offset': 3}])"
    )
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=follower, env=environment() | {"TERM": "xterm"}
    )
    os.close(follower)
    drawn = _read_all(leader)
    assert process.wait() == 0
    assert "─" in drawn
    assert "START OFFSET" in drawn
    assert "[b]orders" in drawn  # A name is not markup.


def test_nothing_is_cut_at_80_columns() -> None:
    row = {"address": "localhost:9092", "state": "active", "out_of_sync": 0, "version": "0.1.0"}
    names = ("address", "rack", "state", "quorum", "leaders", "replicas", "out_of_sync", "version")
    script = f"from ottla.cli.output import print_rows; print_rows({names}, [{row}])"
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=follower,
        env=environment() | {"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(follower)
    drawn = _read_all(leader)
    assert process.wait() == 0
    assert "…" not in drawn
    for word in (*" ".join(names).replace("_", " ").upper().split(), "localhost:9092", "0.1.0"):
        assert word in drawn


def _read_all(terminal: int) -> str:
    """The terminal reports an error, not an end, when its last writer has gone."""
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(terminal)
    return b"".join(chunks).decode()
