"""`ottla service install`."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ottla.cli.errors import CommandError, UsageError
from ottla.cli.service.install import install


def settings(unit: str) -> dict[str, str]:
    lines = [line for line in unit.splitlines() if "=" in line and line[0] != "#"]
    return dict(line.split("=", 1) for line in lines)


def test_the_unit_runs_the_configuration_that_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "broker.yaml"
    config.write_text("log.dirs: [/disks/a, /disks/b]\ncontrolled.shutdown.timeout.ms: 30000\n")
    config.chmod(0o600)
    install(config=config, units=tmp_path, name="broker")
    unit = settings((tmp_path / "broker.service").read_text())
    assert unit["ExecStart"].endswith(f"serve --config {config}")
    assert unit["ReadWritePaths"] == "/disks/a /disks/b"
    assert unit["Type"] == "notify"
    assert int(unit["TimeoutStopSec"]) > 30
    assert "systemctl enable --now broker" in capsys.readouterr().out


def test_systemd_understands_the_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    install(print_=True)
    path = tmp_path / "ottla.service"
    path.write_text(capsys.readouterr().out)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False
    )
    about_it = [line for line in done.stderr.splitlines() if "ottla.service" in line]
    assert not about_it


def test_what_cannot_run_is_not_installed(tmp_path: Path) -> None:
    config = tmp_path / "broker.yaml"
    config.write_text("log.dirs: [data]\n")
    with pytest.raises(UsageError, match="full path"):
        install(config=config, units=tmp_path)
    config.write_text("num.partitions: many\n")
    with pytest.raises(CommandError, match=r"num\.partitions"):
        install(config=config, units=tmp_path)
    with pytest.raises(UsageError, match="--name"):
        install(name="../ottla", units=tmp_path)
    assert not list(tmp_path.glob("*.service"))
