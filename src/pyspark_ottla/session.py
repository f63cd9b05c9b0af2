"""Spark sessions in which the sources are found and streams over topics are fast.

    from pyspark_ottla import spark_session

    spark = spark_session()

Java is found or its absence explained, Python workers run this process's interpreter, and the
settings below apply unless the caller chose others. `prepare` does the first two for a session that
its user builds.
"""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STREAMING = "org.apache.spark.sql.execution.streaming"


def spark_session(
    app_name: str | None = None,
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, object] | None = None,
    builder: "SparkSession.Builder | None" = None,
) -> "SparkSession":
    """The session of this process, created if there is none.

    `master` defaults to that of `spark-submit`, or `local[*]`; `remote` is the address of a Spark
    Connect server, to which the settings do not apply. `settings` override those of `builder`, and
    both override the defaults; an existing session does not get the defaults. Raises JavaNotFound
    if Spark cannot run here.
    """
    from pyspark.sql import SparkSession

    chosen: Any = SparkSession.builder if builder is None else builder
    if app_name is not None:
        chosen = chosen.appName(app_name)
    if remote:
        connected: SparkSession = chosen.remote(remote).getOrCreate()
        return connected
    if master is not None:
        chosen = chosen.master(master)
    given = {**chosen._options, **(settings or {})}
    _prepare_processes(given.get("spark.master"))
    # A running session was set up by this or by its user, and stays unchanged.
    own = {} if _is_running() else session_settings() | {"spark.log.level": "ERROR"}
    for key, value in (own | given).items():
        chosen = chosen.config(key, str(value))
    session: SparkSession = chosen.getOrCreate()
    return session


def _is_running() -> bool:
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def prepare(master: str | None = None) -> None:
    """Choose the driver's Java and the workers' Python, unless already chosen.

    Call before the first session of the process. `master` is that of the session, if not local:
    workers on other machines do not have the program that local ones start with. Raises
    JavaNotFound if Spark cannot run here, and SparkStarted if Spark is running: it has read both
    from the environment by then.
    """
    if _is_started():
        raise SparkStarted(
            "Spark has started already, so its Java and Python are chosen: call"
            " pyspark_ottla.prepare() before the first session is built"
        )
    _prepare_processes(master)


class SparkStarted(Exception):
    """Too late: Spark reads its environment when it starts."""


def _is_started() -> bool:
    """Also true after its session was stopped: Spark stays in its process."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def _prepare_processes(master: str | None) -> None:
    from pyspark_ottla.java import use_java
    from pyspark_ottla.python import use_installed_pyspark

    use_java()
    given = master or os.environ.get("MASTER") or os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    if "://" in given or "yarn" in given:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        use_installed_pyspark()


def session_settings(cores: int | None = None) -> dict[str, str]:
    """Settings for building a session; `cores` counts the whole cluster's, or this machine's.

    Set them when the session is created: a running session ignores some of them.
    """
    from pyspark_ottla.spark_api import CHECKPOINT_FILE_MANAGERS, SETTINGS

    return {
        **SETTINGS,
        # Local TCP sockets to Python workers stall for 40 ms in each micro-batch.
        "spark.python.unix.domain.socket.enabled": "true",
        # Off by default; without it every filter reads the whole topic.
        "spark.sql.python.filterPushdown.enabled": "true",
        # Each shuffle partition costs a task, and with state some files, per micro-batch.
        "spark.sql.shuffle.partitions": str(cores or os.cpu_count() or 1),
        # The default one starts processes to set permissions, for each checkpoint file.
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{CHECKPOINT_FILE_MANAGERS}.FileSystemBasedCheckpointFileManager"
        ),
        # A driver killed while it writes the first offsets leaves a temporary file. From Spark 4.1
        # on, the query would not start again, as if the checkpoint were another query's.
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
        # How long a stream sleeps after finding nothing new.
        "spark.sql.streaming.pollingDelay": "1ms",
        # State larger than the heap; checkpoints contain only changes.
        "spark.sql.streaming.stateStore.providerClass": (
            f"{_STREAMING}.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
    }
