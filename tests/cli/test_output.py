import os
import pty
import re
import subprocess
import sys

import pytest
from tests.cli.command import environment

from ottla.cli.nodes.list import COLUMNS as NODE_COLUMNS
from ottla.cli.output import format_cell, print_rows


def test_plain_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, object]] = [{"topic": "orders", "isr": [1, 2]}, {"topic": "a", "isr": []}]
    print_rows(("topic", "isr"), rows)
    assert capsys.readouterr().out == "TOPIC   ISR\norders  1,2\na\n"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (True, "yes"), (False, "no"), (0, "0"), ([1, 2], "1,2")]
)
def test_cells(value: object, text: str) -> None:
    assert format_cell(value) == text


def draw(columns: tuple[str, ...], row: dict[str, object]) -> str:
    """As on an 80-column terminal, without colors."""
    script = f"from ottla.cli.output import print_rows; print_rows({columns}, [{row}])"
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=follower,
        env=environment() | {"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(follower)
    drawn = _read_all(leader)
    assert process.wait() == 0
    return re.sub(r"\x1b\[\d*m", "", drawn)


def test_a_terminal_gets_a_drawn_table() -> None:
    drawn = draw(("topic", "start_offset"), {"topic": "[b]orders", "start_offset": 3})
    assert "─" in drawn
    assert "START OFFSET" in drawn
    assert "[b]orders" in drawn  # A name is not markup.


def test_nothing_is_cut_at_80_columns() -> None:
    row: dict[str, object] = dict.fromkeys(NODE_COLUMNS, "active")
    row["address"] = "localhost:9092"
    drawn = draw((*NODE_COLUMNS, "damaged"), row)
    assert "…" not in drawn
    titles = " ".join(NODE_COLUMNS).replace("_", " ").upper().split()
    for word in (*titles, "localhost:9092"):
        assert word in drawn


def test_nodes_fit_into_80_columns() -> None:
    row: dict[str, object] = dict.fromkeys(NODE_COLUMNS, 1)
    words = {"address": "127.0.0.1:19192", "state": "active", "version": "0.1.0"}
    drawn = draw(NODE_COLUMNS, row | words | {"quorum": "leader"})
    assert max(map(len, drawn.splitlines())) <= 80


def _read_all(terminal: int) -> str:
    """When its last writer has gone, the terminal reports an error instead of end of file."""
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
