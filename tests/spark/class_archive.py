"""An archive of the classes that Spark loads, which all Java processes of the tests share.

Loading and verifying them is most of what a new session costs. The archive is made from a typical
program, once for each Java and PySpark, in pytest's cache. Java itself checks that an archive is of
the same jars, and does without one that is not.
"""

import contextlib
import fcntl
import hashlib
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyspark
from tests.spark.deployments import base_environment

PROGRAM = "tests.spark.programs.typical_work"
TIMEOUT_S = 800  # On a very busy machine.

# Most processes exit before optimized compilation pays off, and two cores have no use for garbage
# collection threads.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class ClassArchive:
    """`options`, for JDK_JAVA_OPTIONS, name a file: it names the archive once there is one."""

    def __init__(self, directory: Path) -> None:
        name = _key()
        self._archive = directory / f"{name}.jsa"
        self._arguments = directory / f"{name}.arguments"
        self.options = f'"@{self._arguments}"'
        if not self._arguments.exists():
            _write(self._arguments, SHORT_LIVED)

    def make_if_missing(self) -> None:
        """Returns at once if another process is making it."""
        with self._archive.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            if not self._archive.exists():
                self._make()
            if self._archive.exists() and self._archive.stat().st_size:
                shared = f'"-XX:SharedArchiveFile={self._archive}" -Xlog:disable'
                _write(self._arguments, f"{SHORT_LIVED} {shared}")

    def _make(self) -> None:
        """Empty if this Java cannot make one, as without the archive of its own classes."""
        made = self._archive.with_suffix(".made")
        made.unlink(missing_ok=True)
        submitted = ["--driver-java-options", f"-XX:ArchiveClassesAtExit={made}", "pyspark-shell"]
        with contextlib.suppress(subprocess.SubprocessError):  # The next run tries again.
            subprocess.run(
                [sys.executable, "-m", PROGRAM],
                env=base_environment() | {"PYSPARK_SUBMIT_ARGS": shlex.join(submitted)},
                capture_output=True,
                check=True,
                timeout=TIMEOUT_S,
            )
            made.touch()
            made.replace(self._archive)


def _key() -> str:
    """Of the Java and the jars."""
    java = Path(base_environment()["JAVA_HOME"], "bin", "java").resolve()
    jars = Path(pyspark.__file__).parent / "jars"
    state = [(path, path.stat().st_mtime_ns) for path in (java, jars)]
    return hashlib.sha256(repr(state).encode()).hexdigest()[:12]


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
