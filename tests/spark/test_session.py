import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write

from ottla.client.wire.cluster import Cluster, TopicPartition
from pyspark_ottla.session import SparkStarted, prepare, session_settings, spark_session
from pyspark_ottla.spark_api import HAS_FILTERS

# Names that Spark reads without declaring them, so it cannot say whether they exist.
UNDECLARED = {
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
}

SINCE_4_1 = {
    "spark.sql.python.filterPushdown.enabled",
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart",
}

PREPARED = "import pyspark_ottla\npyspark_ottla.prepare()\n"
PLAIN = """\
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
reader = spark.read.format("ottla").option("kafka.bootstrap.servers", sys.argv[1])
print(reader.option("subscribe", sys.argv[2]).load().count())
"""
# Another session of the process, for whose workers nobody has chosen a Python.
OURS = """
import os
from pyspark_ottla import spark_session

spark.stop()
del os.environ["PYSPARK_PYTHON"]
spark = spark_session("counts", master="local[1]", settings={"spark.ui.enabled": False})
reader = spark.read.format("ottla").option("kafka.bootstrap.servers", sys.argv[1])
print(reader.option("subscribe", sys.argv[2]).load().count())
print(spark.conf.get("spark.app.name"), spark.conf.get("spark.sql.python.filterPushdown.enabled"))
"""


def test_spark_knows_every_setting(spark: Any) -> None:
    """Unknown names are ignored, and renamed ones may be too."""
    names = {name for name in session_settings() if name.startswith("spark.sql.")}
    later = set() if HAS_FILTERS else SINCE_4_1
    assert {name for name in names if not spark.conf.isModifiable(name)} == UNDECLARED | later


def test_there_are_as_many_shuffle_partitions_as_cores() -> None:
    assert session_settings(cores=6)["spark.sql.shuffle.partitions"] == "6"


def test_a_session_that_is_there_is_returned(spark: Any) -> None:
    assert spark_session() is spark


def test_a_session_that_is_there_keeps_what_its_user_set(spark: Any) -> None:
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.conf.set(name, "77")
    try:
        assert spark_session().conf.get(name) == "77"
        assert spark_session(settings={name: 78}).conf.get(name) == "78"
    finally:
        spark.conf.set(name, before)


@pytest.fixture
def topic(cluster: Cluster) -> str:
    """With three records."""
    name = create_topic(cluster)
    write(cluster, TopicPartition(name, 0), b"a", b"b", b"c")
    return name


def run_outside(tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Like a user without an activated environment: `python3` on PATH is another Python."""
    kept = ("HOME", "LANG", "JDK_JAVA_OPTIONS", "PYTHONPATH")
    return subprocess.run(
        [sys.executable, *command],
        env={name: os.environ[name] for name in kept if name in os.environ}
        | {"PATH": "/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "runner", "printed"),
    [
        (PLAIN, ["-m", "pyspark_ottla"], ["3"]),
        (PREPARED + PLAIN + OURS, [], ["3", "3", "counts true"]),
    ],
    ids=["run by the module", "prepared by a line, and by a session of ours"],
)
def test_a_script_runs_outside_of_its_virtual_environment(
    script: str, runner: list[str], printed: list[str], bootstrap: str, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "script.py"
    path.write_text(script)
    done = run_outside(tmp_path, *runner, str(path), bootstrap, topic)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed


@pytest.mark.usefixtures("spark")
def test_preparing_a_spark_that_runs_is_refused() -> None:
    with pytest.raises(SparkStarted, match="before the first session"):
        prepare()
