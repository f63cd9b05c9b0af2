"""The Spark that a pipeline runs on: in this process, on a cluster, or behind Spark Connect."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from pyspark_ottla.session import session_settings, spark_session

LOCAL = "local[*]"

QUIET = {"spark.log.level": "WARN", "spark.ui.enabled": "false"}
_TIME_ZONE = {"spark.sql.session.timeZone": "UTC"}
_OF_STREAMS = "spark.sql.streaming."
_STDERR = 2
_QUERY_LOGGER = "SQLQueryContextLogger"


def open_session(
    name: str, *, master: str = LOCAL, remote: str = "", settings: Mapping[str, str], log: Path
) -> SparkSession:
    """`settings` override those of pipelines; Java's output goes to the log.

    Raises JavaNotFound if there is none.
    """
    if remote:
        return spark_session(name, remote=remote)
    # PySpark also logs what it raises, in JSON; a pipeline reports it in a sentence.
    PySparkLogger.getLogger(_QUERY_LOGGER).disabled = True
    with stderr_to(log):
        return spark_session(name, master=master, settings=QUIET | dict(settings))


def apply_settings(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """What streams need in a session created by someone else, as far as it can be changed."""
    own = {key: value for key, value in session_settings().items() if key.startswith(_OF_STREAMS)}
    for key, value in (_TIME_ZONE | own | dict(settings)).items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)


@contextlib.contextmanager
def stderr_to(log: Path) -> Iterator[None]:
    """For processes started meanwhile, as long as they live."""
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
