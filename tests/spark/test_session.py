from typing import Any

from pyspark_ottla.session import session_settings

# Names that Spark reads without declaring them, so that it cannot say whether it knows them.
UNDECLARED = {
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
}


def test_spark_knows_every_setting(spark: Any) -> None:
    """A name that it does not know is ignored, and one that was renamed may be too."""
    names = {name for name in session_settings() if name.startswith("spark.sql.")}
    assert {name for name in names if not spark.conf.isModifiable(name)} == UNDECLARED


def test_there_are_as_many_shuffle_partitions_as_cores() -> None:
    assert session_settings(cores=6)["spark.sql.shuffle.partitions"] == "6"
