"""Whether a pipeline or a backfill of it runs: each locks a file next to its checkpoints.

The system releases it when the process ends, however it ends. Checkpoints that are not local files
have no lock, nor do those on a file system without locks.
"""

import fcntl
import os
from pathlib import Path
from typing import IO

from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.paths import has_scheme

RUN = "running"
BACKFILL = "backfilling"


class RunLock:
    def __init__(self, pipeline: Pipeline, *, is_remote: bool = False, name: str = RUN) -> None:
        self._pipeline = pipeline
        self._name = name
        self._is_used = not is_remote and not has_scheme(pipeline.checkpoints)
        self._file: IO[str] | None = None

    def take(self) -> None:
        """Raises PipelineError if another run holds it."""
        if not self._is_used:
            return
        path = Path(self._pipeline.checkpoints, self._name)
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            runner = find_runner(self._pipeline, self._name)
            raise self._pipeline.error(_REFUSALS[self._name].format(runner)) from None
        except OSError:  # A file system without locks.
            file.close()
            return
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def give_back(self) -> None:
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None


_REFUSALS = {
    RUN: (
        "it runs already, as process {}, with these checkpoints; stop that one, or give"
        " --checkpoints and other sink-ids"
    ),
    BACKFILL: "a backfill of it runs already, as process {}; wait for it, or stop it first",
}


def find_runner(pipeline: Pipeline, name: str = RUN) -> int | None:
    """The process that runs it; None if none does."""
    path = Path(pipeline.checkpoints, name)
    if not path.is_file():
        return None
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = file.read()
            return int(text) if text.isdecimal() else 0
        except OSError:
            return None
    return None
