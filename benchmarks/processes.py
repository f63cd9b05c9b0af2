"""Processes of a run: start, stop, and what the kernel says about their memory and processor time.

A process started here leads its own process group, so that stopping it stops what it started.
"""

import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

STOP_SECONDS_MAX = 60.0
OPEN_FILES = 65_536


def spawn(
    command: Sequence[str],
    log_path: Path,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a process; its output goes to `log_path`."""
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes], seconds_max: float = STOP_SECONDS_MAX) -> None:
    """Asks the process to stop, waits, and kills its group if it does not."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def raise_open_files_limit() -> None:
    """Raises the open-file limit of this process and its children to the maximum."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def resident_bytes(pid: int) -> int:
    """The resident set now (VmRSS)."""
    return _status_bytes(pid, "VmRSS")


def peak_resident_bytes(pid: int) -> int:
    """The largest resident set so far (VmHWM)."""
    return _status_bytes(pid, "VmHWM")


def processor_seconds(pid: int) -> float:
    """User and system time of all threads since the process began."""
    scheduled_time = 2
    return time.clock_gettime(~pid << 3 | scheduled_time)  # As clock_getcpuclockid(3) names it.


def free_port() -> int:
    """A port reserved while this process runs, which a server can still bind.

    The socket that holds it is bound but not listening, and both sides set SO_REUSEADDR.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        held.detach()  # It stays open.
        return port


def _status_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no {field}")
