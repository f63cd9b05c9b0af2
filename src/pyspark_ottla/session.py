"""Spark sessions in which the sources are found and streams over topics are fast.

    from pyspark_ottla import spark_session

    spark = spark_session()

Java is found or its absence explained, Python workers run the interpreter of this process, and the
settings below apply unless the caller chose others.
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
    """The session of this process, made if there is none yet.

    `master` is that of `spark-submit`, or `local[*]`, unless given; `remote` is the address of a
    Spark Connect server, to which the settings do not apply. `settings` win over those of
    `builder`, and both over the defaults, which a session that is there already does not get.
    Raises JavaNotFound if Spark cannot run here.
    """
    from pyspark.sql import SparkSession

    chosen: Any = SparkSession.builder if builder is None else builder
    if app_name is not None:
        chosen = chosen.appName(app_name)
    if remote:
        connected: SparkSession = chosen.remote(remote).getOrCreate()
        return connected
    _prepare_processes(master)
    if master is not None:
        chosen = chosen.master(master)
    # A session that runs has been set up, by this or by its user, and stays as it is.
    own = {} if _is_running() else session_settings() | {"spark.log.level": "ERROR"}
    for key, value in ({**own, **chosen._options, **(settings or {})}).items():
        chosen = chosen.config(key, str(value))
    session: SparkSession = chosen.getOrCreate()
    return session


def _is_running() -> bool:
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def _prepare_processes(master: str | None) -> None:
    """Choose the Java of the driver and the Python of the workers, where nobody has."""
    from pyspark_ottla.java import use_java
    from pyspark_ottla.python import use_installed_pyspark

    use_java()
    given = master or os.environ.get("MASTER") or os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    if "://" in given or "yarn" in given:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    else:
        use_installed_pyspark()


def session_settings(cores: int | None = None) -> dict[str, str]:
    """To build a session with; `cores` are those of the whole cluster, or of this machine.

    They belong to the session's beginning: some of them are not heeded by one that runs.
    """
    from pyspark_ottla.spark_api import VERSION

    managers = _STREAMING if VERSION < (4, 1) else f"{_STREAMING}.checkpointing"
    return _settings_of_old_versions() | {
        # Local TCP sockets to Python workers stall for 40 ms in each micro-batch.
        "spark.python.unix.domain.socket.enabled": "true",
        # Off by default; without it every filter reads the whole topic.
        "spark.sql.python.filterPushdown.enabled": "true",
        # Each partition of a shuffle costs a task, and each with state some files, per micro-batch.
        "spark.sql.shuffle.partitions": str(cores or os.cpu_count() or 1),
        # The default one starts processes to set permissions, for each of the checkpoint's files.
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{managers}.FileSystemBasedCheckpointFileManager"
        ),
        # How long a stream sleeps that has found nothing new.
        "spark.sql.streaming.pollingDelay": "1ms",
        # State that does not fit into the heap; only what changed is written to the checkpoint.
        "spark.sql.streaming.stateStore.providerClass": (
            f"{_STREAMING}.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
    }


def _settings_of_old_versions() -> dict[str, str]:
    """Before Spark 4.2 Trigger.AvailableNow is one batch for a source in Python, also one that
    repeats another, and none of those that close windows follows. With this it goes on until it is
    where the topics ended when it began.
    """
    from pyspark_ottla.spark_api import HAS_LIMITS

    return {} if HAS_LIMITS else {"spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true"}
