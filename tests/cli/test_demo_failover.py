"""A short `ottla demo`: it kills a node, loses nothing and leaves nothing behind."""

import json
import signal
from pathlib import Path

import pytest
from tests.cli.command import start_ottla

pytestmark = pytest.mark.process

TIMEOUT_S = 600


def children(pid: int) -> list[Path]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path("/proc", child) for child in found]


def test_nothing_is_lost_when_a_leader_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start_ottla("demo", "--seconds", "4", "--rate", "200", "--json")
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, errors.decode()
    outcome = json.loads(output)
    assert outcome["passed"]
    assert outcome["killed_node"] in (1, 2, 3)
    assert outcome["acknowledged"] == outcome["read"] > 0
    assert (outcome["lost"], outcome["duplicated"], outcome["out_of_order"]) == (0, 0, 0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("moment", ["starting 3 nodes", "writing"])
def test_an_interrupt_leaves_nothing(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start_ottla("demo", "--seconds", "600", "--rate", "200", "--no-live")
    try:
        assert process.stdout is not None
        while moment not in process.stdout.readline().decode():
            assert process.poll() is None
        nodes = children(process.pid)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.communicate()
    if moment == "writing":
        assert process.returncode == 0, errors.decode()
        assert "0 lost, 0 twice, 0 out of order" in output.decode()
    else:
        assert process.returncode == 130, errors.decode()
    assert not any(node.exists() for node in nodes)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [("--seconds", "1"), ("--rate", "0")])
def test_wrong_options_are_refused(options: tuple[str, str]) -> None:
    process = start_ottla("demo", *options)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 2
    assert options[0] in errors.decode()
