"""Spark's own Kafka source, `format("kafka")`: its jars, resolved by Maven into the cache.

The version is that of the installed Spark. A release may reach a Maven Central mirror later than
PyPI; then the newest earlier version is used. The jars run in the same Spark as the source under
test.
"""

from pathlib import Path

from pyspark.version import __version__ as pyspark_version

from benchmarks.maven import NotFound, maven
from benchmarks.peers.peer import Unavailable


def _spark_versions(installed: str) -> tuple[str, ...]:
    """From the installed one down, then the first releases of earlier minor versions."""
    major, minor, patch = map(int, installed.split("."))
    of_minor = [f"{major}.{minor}.{number}" for number in range(patch, -1, -1)]
    return (*of_minor, *(f"{major}.{before}.0" for before in range(minor - 1, -1, -1)))


_VERSIONS = _spark_versions(pyspark_version)
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", _VERSIONS),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", _VERSIONS),
    ("org.apache.kafka", "kafka-clients", ("3.9.2",)),
    ("org.apache.commons", "commons-pool2", ("2.13.1",)),
)


def resolve(cache: Path) -> list[Path]:
    """The jars; Unavailable if one of them is missing."""
    directory = cache / "spark-sql-kafka"
    directory.mkdir(parents=True, exist_ok=True)
    return [_find(directory, *artifact) for artifact in ARTIFACTS]


def _find(directory: Path, group: str, name: str, versions: tuple[str, ...]) -> Path:
    for version in versions:
        jar = directory / f"{name}-{version}.jar"
        if jar.exists() or _copy(directory, f"{group}:{name}:{version}"):
            return jar
    raise Unavailable(f"there is none of {name} {', '.join(versions)}")


def _copy(directory: Path, artifact: str) -> bool:
    try:
        maven(
            "dependency:copy",
            f"-Dartifact={artifact}",
            "-DoutputDirectory=.",
            directory=directory,
        )
    except NotFound:
        return False
    return True
