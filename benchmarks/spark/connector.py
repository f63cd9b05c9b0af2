"""Spark's own Kafka source, `format("kafka")`: its jars, from Maven Central into the cache.

A new release of Spark may reach a mirror of Central later than PyPI, so of each artifact the newest
version that is there is taken. The jars run in the same Spark as the source that is measured.
"""

import urllib.error
import urllib.request
from pathlib import Path

from benchmarks.peers.peer import Unavailable

CENTRAL = "https://repo1.maven.org/maven2"
TIMEOUT_S = 60
ARTIFACTS = (
    ("org/apache/spark", "spark-sql-kafka-0-10_2.13", ("4.3.0", "4.2.0", "4.1.0")),
    ("org/apache/spark", "spark-token-provider-kafka-0-10_2.13", ("4.3.0", "4.2.0", "4.0.0")),
    ("org/apache/kafka", "kafka-clients", ("3.9.2",)),
    ("org/apache/commons", "commons-pool2", ("2.13.1",)),
)


def resolve(cache: Path) -> list[Path]:
    """The jars; Unavailable if one of them cannot be had."""
    directory = cache / "spark-sql-kafka"
    directory.mkdir(parents=True, exist_ok=True)
    return [_find(directory, *artifact) for artifact in ARTIFACTS]


def _find(directory: Path, group: str, name: str, versions: tuple[str, ...]) -> Path:
    for version in versions:
        jar = directory / f"{name}-{version}.jar"
        if jar.exists() or _download(f"{CENTRAL}/{group}/{name}/{version}/{jar.name}", jar):
            return jar
    raise Unavailable(f"Maven Central has none of {name} {', '.join(versions)}")


def _download(address: str, jar: Path) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as response:
            content = response.read()
    except urllib.error.HTTPError:
        return False
    except OSError as error:
        raise Unavailable(f"Maven Central cannot be reached: {error}") from error
    jar.write_bytes(content)
    return True
