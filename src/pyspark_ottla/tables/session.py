"""The Spark that a sync runs on: in this process, on a cluster, or behind Spark Connect."""

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from pyspark_ottla.java import use_java
from pyspark_ottla.session import session_settings

_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
}


def open_session(name: str, master: str, remote: str | None) -> SparkSession:
    """JavaNotFound if Spark cannot run here."""
    builder: Any = SparkSession.builder.appName(name)
    if remote:
        session: SparkSession = builder.remote(remote).getOrCreate()
        return session
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in (session_settings() | _SETTINGS).items():
        builder = builder.config(key, value)
    opened: SparkSession = builder.master(master).getOrCreate()
    return opened
