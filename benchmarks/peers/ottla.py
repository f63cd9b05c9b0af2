"""Ottla of this source tree, installed as a user installs it.

The environment in the cache directory has no development packages, which would change the start-up
time: kio imports Hypothesis where it finds it.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.peers.peer import GROUP_SETTINGS, Flush, Member, Unavailable

SOURCE = Path(__file__).parents[2]
INSTALL_SECONDS_MAX = 600
FLUSH_INTERVAL_MS = 1000


class Ottla:
    name = "ottla"

    def __init__(self, warm_seconds: float, python: Path = Path()) -> None:
        """`python` is the interpreter that has Ottla; `prepare` makes one."""
        self._warm_seconds = warm_seconds
        self._python = python

    def prepare(self, cache: Path) -> None:
        environment = cache / "ottla-environment"
        self._python = environment / "bin" / "python"
        if not (environment / "ready").exists():
            self._run(sys.executable, "-m", "venv", "--clear", str(environment))
            self._install("--constraint", str(SOURCE / "constraints.txt"), str(SOURCE))
            (environment / "ready").touch()
        self._install("--no-deps", "--force-reinstall", str(SOURCE))

    def _install(self, *arguments: str) -> None:
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        self._run(str(self._python), *pip, *arguments)

    def _run(self, *command: str) -> None:
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS_MAX)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"Ottla could not be installed: {error}") from error

    def settings(self) -> dict[str, str]:
        show = [str(self._python), "-c", "import ottla; print(ottla.__version__)"]
        version = subprocess.run(show, check=True, capture_output=True, text=True)
        return {
            "Ottla": f"{version.stdout.strip()}, one process for each node, defaults",
            "groups": f"{', '.join(_group_settings())} on every broker",
            "Ottla flush": f"flush.policy=ack|interval|os, flush.interval.ms={FLUSH_INTERVAL_MS}",
        }

    def format(self, directory: Path, port: int) -> None:
        del directory, port  # The broker does this when it starts, within the measured time.

    def command(self, directory: Path, port: int, flush: Flush) -> list[str]:
        return [
            str(self._python),
            "-m",
            "ottla",
            "serve",
            "--data",
            str(directory),
            "--port",
            str(port),
            "--set",
            f"flush.policy={flush.value}",
            "--set",
            f"flush.interval.ms={FLUSH_INTERVAL_MS}",
            "--set",
            "log.segment.delete.delay.ms=1000",
            *(word for setting in _group_settings() for word in ("--set", setting)),
        ]

    def format_member(
        self, members: Sequence[Member], member: Member, settings: Mapping[str, str]
    ) -> None:
        del members, member, settings  # As with one node.

    def member_command(
        self, members: Sequence[Member], member: Member, flush: Flush, settings: Mapping[str, str]
    ) -> list[str]:
        """The first one begins the cluster; the others join it."""
        first = members[0]
        join = [] if member is first else ["--join", f"127.0.0.1:{first.port}"]
        overrides = [f"{name}={value}" for name, value in settings.items()]
        return [
            *self.command(member.directory, member.port, flush),
            "--id",
            str(member.node_id),
            *join,
            *(word for override in overrides for word in ("--set", override)),
        ]

    def topic_config(self, flush: Flush) -> dict[str, str]:
        del flush  # A matter of the broker.
        return {}

    def shares_server(self) -> bool:
        return False

    def warm_seconds(self) -> float:
        return self._warm_seconds


def _group_settings() -> list[str]:
    return [f"{name}={value}" for name, value in GROUP_SETTINGS.items()]
