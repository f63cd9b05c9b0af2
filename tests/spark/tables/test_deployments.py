"""`ottla table sync` wherever Spark runs: on a cluster of processes, and through Spark Connect."""

import json
import time
from pathlib import Path

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.tables.written import parquet_files, read
from tests.spark.deployments import Deployment

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.spark_api import HAS_LIMITS
from pyspark_ottla.tables.table import open_table

ROWS = 3  # In each of two partitions.


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("deployment", "option", "kind"),
    [("standalone", "--master", "delta"), ("connect", "--remote", "iceberg")],
    indirect=["deployment"],
)
def test_a_topic_becomes_a_table(
    deployment: Deployment,
    cluster: Cluster,
    bootstrap: str,
    tmp_path: Path,
    option: str,
    kind: str,
) -> None:
    topic = create_topic(cluster, partitions=2)
    now_ms = time.time_ns() // 1_000_000
    for partition in range(2):
        values = [json.dumps({"item": index}).encode() for index in range(ROWS)]
        records = [Record(timestamp=now_ms, value=value) for value in values]
        write(cluster, TopicPartition(topic, partition), *records)
    address = f"{kind}:{tmp_path}/lake/orders"
    command = ("table", "sync", topic, "--to", address, "--once", "--max-records", "4")
    servers = ("--bootstrap-server", bootstrap, option, deployment.address)
    printed = deployment.run("ottla", *command, *servers)
    batches = ["4 rows", "2 rows"] if HAS_LIMITS else ["6 rows"]
    assert [line.partition(": ")[2] for line in printed.splitlines()] == batches
    table = open_table(address)
    found = sorted((row["_partition"], row["_offset"], row["item"]) for row in read(table))
    assert found == [(partition, index, index) for partition in range(2) for index in range(ROWS)]
    assert len(parquet_files(table)) == len(table.files())
