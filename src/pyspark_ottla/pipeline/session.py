"""The Spark that a pipeline runs on: in this process, on a cluster, or behind Spark Connect."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

LOCAL = "local[*]"

_STREAMING = "org.apache.spark.sql.execution.streaming"
_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
}


def open_session(
    name: str, *, master: str = LOCAL, remote: str = "", settings: Mapping[str, str]
) -> SparkSession:
    """`settings` go before those that pipelines have by themselves."""
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
    opened: SparkSession = builder.getOrCreate()
    return opened
