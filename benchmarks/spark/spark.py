"""The Spark session of all measurements, with the settings of the pipeline runner."""

import os
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_ottla.java import use_java
from pyspark_ottla.python import use_installed_pyspark
from pyspark_ottla.session import session_settings

CORES = 2
SOURCE = Path(__file__).parents[2] / "src"
SETTINGS = session_settings(CORES) | {"spark.ui.enabled": "false"}


def start_spark(jars: Iterable[Path], cache: Path) -> SparkSession:
    use_java()
    use_installed_pyspark()
    _work_as_for_users(cache)
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("bench-spark")
    builder = builder.config("spark.jars", ",".join(map(str, jars)))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _work_as_for_users(cache: Path) -> None:
    """Python workers keep bytecode and lack Hypothesis, which kio imports if present."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    missing = cache / "without-hypothesis"
    missing.mkdir(exist_ok=True)
    (missing / "hypothesis.py").write_text('raise ImportError("left out of this measurement")\n')
    path = [str(missing), str(SOURCE), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
