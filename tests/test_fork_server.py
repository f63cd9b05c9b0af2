"""A forked program has the same environment as a newly started one, and exits alike."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.fork_server import BROKER, GATEWAY, REPOSITORY, ForkedProcess, run_forked

pytestmark = pytest.mark.process

MODULE = "tests.test_fork_server"
OPEN_FILES_MAX = 500
TIMEOUT_S = 240


def facts() -> dict[str, Any]:
    """A process's view of itself."""
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)
    return {
        "arguments": sys.argv[1:],
        "environment": {name: value for name, value in os.environ.items() if name != "_"},
        "directory": str(Path.cwd()),
        "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[
            :-1
        ],  # Without the listing's own.
        "signals": [str(signal.getsignal(number)).split(" at ")[0] for number in handled],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "threads": threading.active_count(),
        "open files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "processor time": resource.getrlimit(resource.RLIMIT_CPU),
        "group": os.getpgid(0),
        "session": os.getsid(0),
        "umask": os.umask(0o22),
        "input": sys.stdin.read(),
    }


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}", "ONLY": "here"}


def started(*arguments: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", MODULE, *arguments],
        cwd=directory,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_finds_what_it_would_find(tmp_path: Path) -> None:
    new = started("one", "two words", directory=tmp_path)
    forked = run_forked(
        MODULE, ["one", "two words"], environment(), timeout=TIMEOUT_S, directory=tmp_path
    )
    assert json.loads(forked.stdout) == json.loads(new.stdout)
    assert (forked.returncode, forked.stderr) == (new.returncode, new.stderr) == (0, "told\n")


@pytest.mark.parametrize("how", ["exit 3", "exit words", "raise"])
def test_it_ends_as_it_would_end(tmp_path: Path, how: str) -> None:
    new = started(how, directory=tmp_path)
    forked = run_forked(MODULE, [how], environment(), timeout=TIMEOUT_S, directory=tmp_path)
    assert forked.returncode == new.returncode != 0
    assert forked.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]


@pytest.mark.parametrize("preloaded", [BROKER, GATEWAY])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGABRT])
def test_a_signal_ends_it(
    tmp_path: Path, preloaded: tuple[str, ...], number: signal.Signals
) -> None:
    with (tmp_path / "output").open("wb") as output:
        process = ForkedProcess(
            MODULE,
            ["wait"],
            environment(),
            output.fileno(),
            output.fileno(),
            preloaded=preloaded,
        )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(TIMEOUT_S) == process.poll() == -number
    process.kill()  # Has no effect: the number may belong to another process by now.


def test_its_open_files_are_limited_as_it_was_asked(tmp_path: Path) -> None:
    with (tmp_path / "output").open("w+") as output, (tmp_path / "errors").open("w") as errors:
        process = ForkedProcess(
            MODULE,
            [],
            environment(),
            output.fileno(),
            errors.fileno(),
            open_files_max=OPEN_FILES_MAX,
        )
        assert process.wait(TIMEOUT_S) == 0
        output.seek(0)
        assert json.load(output)["open files"] == [OPEN_FILES_MAX, OPEN_FILES_MAX]


def main(arguments: list[str]) -> None:
    match arguments:
        case ["wait"]:
            signal.pause()
        case ["raise"]:
            raise ValueError("as asked")
        case ["exit 3"]:
            sys.exit(3)
        case ["exit words"]:
            sys.exit("words")
        case _:
            json.dump(facts(), sys.stdout)
            sys.stderr.write("told\n")


if __name__ == "__main__":
    main(sys.argv[1:])
