"""The machine of the measurements."""

import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

BUSY_SHARE = 0.25


def describe_machine(directory: Path) -> dict[str, str]:
    """Hardware and software, as pairs for the report; the disk is that of `directory`."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{_memory_bytes() / 1e9:.0f} GB",
        "disk": f"{_file_system(directory)}, {shutil.disk_usage(directory).free / 1e9:.0f} GB free",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "client": _client(),
        "load average at the start": "{:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg()),
    }


def is_busy() -> bool:
    """Whether other work on the machine would distort the figures."""
    return os.getloadavg()[0] > BUSY_SHARE * (os.cpu_count() or 1)


def java_version() -> str:
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return shown.stderr.splitlines()[1].strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _file_system(directory: Path) -> str:
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, this_kind, *_ = line.split()
        inside = directory.resolve().is_relative_to(mount)
        if inside and len(mount) > len(best):
            best, kind = mount, this_kind
    return kind


def _client() -> str:
    probe = "import confluent_kafka as c; print(c.libversion()[0])"
    library = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    version = metadata.version("confluent-kafka")
    return f"confluent-kafka {version} (librdkafka {library.stdout.strip()})"
