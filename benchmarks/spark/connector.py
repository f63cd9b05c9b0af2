"""Spark's own Kafka source, `format("kafka")`: its jars, resolved by Maven into the cache.

A new release of Spark may reach a mirror of Maven Central later than PyPI, so of each artifact the
newest version that is there is taken. The jars run in the same Spark as the source that is
measured.
"""

from pathlib import Path

from benchmarks.maven import NotFound, maven
from benchmarks.peers.peer import Unavailable

ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", ("4.3.0", "4.2.0", "4.1.0")),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", ("4.3.0", "4.2.0", "4.0.0")),
    ("org.apache.kafka", "kafka-clients", ("3.9.2",)),
    ("org.apache.commons", "commons-pool2", ("2.13.1",)),
)


def resolve(cache: Path) -> list[Path]:
    """The jars; Unavailable if one of them cannot be had."""
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
