"""Runs Maven, which resolves published artifacts by name."""

import shutil
import subprocess
from pathlib import Path

from benchmarks.peers.peer import Unavailable

SECONDS_MAX = 600


class NotFound(Unavailable):
    """Maven ran and could not resolve an artifact."""


def maven(*arguments: str, directory: Path) -> None:
    """Runs in a directory with a project, if the goal needs one."""
    if shutil.which("mvn") is None:
        raise Unavailable("Maven, which resolves it, is not installed")
    try:
        subprocess.run(
            ["mvn", "--batch-mode", "--quiet", *arguments],
            cwd=directory,
            timeout=SECONDS_MAX,
            check=True,
            capture_output=True,
        )
    except subprocess.CalledProcessError as error:
        raise NotFound(f"Maven could not resolve it: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"Maven took too long: {error}") from error
