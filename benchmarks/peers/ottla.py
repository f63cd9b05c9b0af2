"""Ottla from this source tree or a revision of it, installed as a user would.

The environment in the cache directory has no development packages, which would change the startup
time: kio imports Hypothesis if it is there.
"""

import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.peers.peer import GROUP_SETTINGS, Flush, Member, Unavailable

SOURCE = Path(__file__).parents[2]
INSTALL_SECONDS_MAX = 600
FLUSH_INTERVAL_MS = 1000


class Ottla:
    def __init__(
        self, warm_seconds: float, python: Path = Path(), *, revision: str | None = None
    ) -> None:
        """`python` is an interpreter with Ottla; `prepare` creates one.

        Without a revision it has the source tree, uncommitted changes included.
        """
        self.name = "ottla" if revision is None else f"ottla@{revision}"
        self._warm_seconds = warm_seconds
        self._python = python
        self._revision = revision

    def prepare(self, cache: Path) -> None:
        environment = cache / f"{self.name.replace('/', '_')}-environment"
        self._python = environment / "bin" / "python"
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            source = SOURCE if self._revision is None else self._checked_out(Path(directory))
            if not (environment / "ready").exists():
                self._run(sys.executable, "-m", "venv", "--clear", str(environment))
                self._install("--constraint", str(source / "constraints.txt"), str(source))
                (environment / "ready").touch()
            self._install("--no-deps", "--force-reinstall", str(source))

    def _checked_out(self, directory: Path) -> Path:
        """The files of the revision."""
        archive = directory / "revision.tar"
        git = ("git", "-C", str(SOURCE), "archive", f"--output={archive}")
        self._run(*git, "--end-of-options", str(self._revision))
        with tarfile.open(archive) as files:
            files.extractall(directory, filter="data")
        return directory

    def _install(self, *arguments: str) -> None:
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        self._run(str(self._python), *pip, *arguments)

    def _run(self, *command: str) -> None:
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS_MAX)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{self.name} could not be installed: {error}") from error

    def settings(self) -> dict[str, str]:
        show = [str(self._python), "-c", "import ottla; print(ottla.__version__)"]
        version = subprocess.run(show, check=True, capture_output=True, text=True)
        if self._revision is not None:
            return {self.name: f"{version.stdout.strip()}, with the same settings"}
        return {
            "Ottla": f"{version.stdout.strip()}, one process for each node, defaults",
            "groups": f"{', '.join(_group_settings())} on every broker",
            "Ottla flush": f"flush.policy=ack|interval|os, flush.interval.ms={FLUSH_INTERVAL_MS}",
        }

    def format(self, directory: Path, port: int) -> None:
        del directory, port  # The broker does this when it starts, within the measured time.

    def command(self, directory: Path, port: int, flush: Flush) -> list[str]:
        return [*self._command(directory, flush), "--port", str(port)]

    def _command(self, directory: Path, flush: Flush) -> list[str]:
        return [
            str(self._python),
            "-m",
            "ottla",
            "serve",
            "--data",
            str(directory),
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
        del members, member, settings  # As for one node.

    def member_command(
        self, members: Sequence[Member], member: Member, flush: Flush, settings: Mapping[str, str]
    ) -> list[str]:
        """The first one starts the cluster; the others join it.

        Settings that name listeners override the member's port.
        """
        first = members[0]
        join = [] if member is first else ["--join", f"127.0.0.1:{first.port}"]
        overrides = [f"{name}={value}" for name, value in settings.items()]
        return [
            *self._command(member.directory, flush),
            *([] if "listeners" in settings else ["--port", str(member.port)]),
            "--id",
            str(member.node_id),
            *join,
            *(word for override in overrides for word in ("--set", override)),
        ]

    def topic_config(self, flush: Flush) -> dict[str, str]:
        del flush  # A broker setting.
        return {}

    def shares_server(self) -> bool:
        return False

    def warm_seconds(self) -> float:
        return self._warm_seconds


def _group_settings() -> list[str]:
    return [f"{name}={value}" for name, value in GROUP_SETTINGS.items()]
