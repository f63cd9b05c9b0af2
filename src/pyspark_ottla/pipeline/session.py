"""The Spark that a pipeline runs on: in this process, on a cluster, or behind Spark Connect."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

LOCAL = "local[*]"

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "WARN",
    "spark.ui.showConsoleProgress": "false",
}
_STDERR = 2


def open_session(
    name: str, *, master: str = LOCAL, remote: str = "", settings: Mapping[str, str], log: Path
) -> SparkSession:
    """`settings` go before those that pipelines have; what Java says goes to the log."""
    builder: Any = SparkSession.builder.appName(name)
    if remote:
        session: SparkSession = builder.remote(remote).getOrCreate()
        for key, value in settings.items():
            session.conf.set(key, value)
        return session
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.master(master)
    for key, value in (_SETTINGS | dict(settings)).items():
        builder = builder.config(key, value)
    with _stderr_to(log):
        opened: SparkSession = builder.getOrCreate()
    return opened


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Of the processes that are started meanwhile, for as long as they live."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    own = os.dup(_STDERR)
    with log.open("ab") as file:
        os.dup2(file.fileno(), _STDERR)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, _STDERR)
        os.close(own)
