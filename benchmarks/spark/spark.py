"""The Spark that everything is measured in, with the settings of the pipeline runner."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_ottla.java import use_java
from pyspark_ottla.session import session_settings

CORES = 2
SETTINGS = session_settings(CORES) | {"spark.ui.enabled": "false"}


def start_spark(jars: Iterable[Path]) -> SparkSession:
    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("bench-spark")
    builder = builder.config("spark.jars", ",".join(map(str, jars)))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session
