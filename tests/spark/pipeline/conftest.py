"""Pipelines of a few lines, run in the session of the other tests."""

import json
import os
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.sink.written import values

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.progress import Progress
from pyspark_ottla.pipeline.run import run_pipeline


class Workshop:
    """A directory with a pipeline and topics of its own: {name} stands for a unique name."""

    def __init__(self, spark: Any, bootstrap: str, cluster: Cluster, directory: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.cluster = cluster
        self.directory = directory
        self.name = f"p{os.getpid()}-{directory.name}"[-50:].replace(".", "-")

    def topic(self, name: str, partitions: int = 1) -> str:
        return create_topic(self.cluster, partitions, f"{self.name}-{name}")

    def send(
        self, topic: str, rows: Iterable[Any], key: Callable[[Any], str] | None = None
    ) -> None:
        """Rows as JSON; text unchanged. A record's timestamp is its number in milliseconds."""
        records = [
            Record(
                timestamp=number,
                key=key(row).encode() if key else None,
                value=row.encode() if isinstance(row, str) else json.dumps(row).encode(),
            )
            for number, row in enumerate(rows)
        ]
        write(self.cluster, TopicPartition(f"{self.name}-{topic}", 0), *records)

    def load(self, text: str) -> Pipeline:
        path = self.directory / "pipeline.yaml"
        path.write_text(textwrap.dedent(text).replace("{name}", self.name))
        return load_pipeline(path, bootstrap_servers=self.bootstrap)

    def run(self, text: str) -> Progress:
        return run_pipeline(self.spark, self.load(text))

    def values(self, topic: str) -> list[str]:
        """As `read_committed` consumers see them, sorted."""
        return values(self.cluster, f"{self.name}-{topic}")

    def objects(self, topic: str) -> list[Any]:
        return [json.loads(value) for value in self.values(topic)]


@pytest.fixture
def workshop(spark: Any, bootstrap: str, cluster: Cluster, tmp_path: Path) -> Workshop:
    return Workshop(spark, bootstrap, cluster, tmp_path)
