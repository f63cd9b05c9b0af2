"""Debian packages, unpacked into a directory instead of installed."""

import shutil
import subprocess
from pathlib import Path

from benchmarks.peers.peer import Unavailable

DOWNLOAD_SECONDS_MAX = 120


def unpack(directory: Path, *packages: str) -> None:
    """Raises Unavailable. Dependencies must be named too, unless they are installed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise Unavailable("it is taken from Debian's packages")
    directory.mkdir(parents=True, exist_ok=True)
    try:
        _run(directory, "apt-get", "download", *packages)
        for package in directory.glob("*.deb"):
            _run(directory, "dpkg", "-x", str(package), str(directory))
    except subprocess.SubprocessError as error:
        raise Unavailable(f"{', '.join(packages)} could not be downloaded: {error}") from error


def _run(directory: Path, *command: str) -> None:
    subprocess.run(
        command, cwd=directory, check=True, capture_output=True, timeout=DOWNLOAD_SECONDS_MAX
    )
