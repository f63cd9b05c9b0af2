"""The Spark that a sync runs on: in this process, on a cluster, or behind Spark Connect."""

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}


def open_session(name: str, master: str, remote: str | None) -> SparkSession:
    builder: Any = SparkSession.builder.appName(name)
    if remote:
        session: SparkSession = builder.remote(remote).getOrCreate()
        return session
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    opened: SparkSession = builder.master(master).getOrCreate()
    return opened
