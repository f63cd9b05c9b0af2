"""Whenever the driver dies, every record is in the table once after a later run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.client.topics import create_topic
from tests.fork_server import REPOSITORY
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.tables.written import parquet_files, read
from tests.spark.tables.kill_driver import MAINTENANCE_POINTS, NEVER, POINTS

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.tables.check import check_table
from pyspark_ottla.tables.table import open_table

TIMEOUT_S = 800


def start(bootstrap: str, topic: str, table: str, point: str) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
    command = [sys.executable, "-m", "tests.spark.tables.kill_driver"]
    return subprocess.Popen(
        [*command, bootstrap, topic, table, point],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def send(cluster: Cluster, topic: str, partition: int, item: str) -> None:
    """Timestamped now: the test may take longer than the broker keeps old records."""
    now_ms = time.time_ns() // 1_000_000
    record = Record(timestamp=now_ms, value=json.dumps({"item": item}).encode())
    write(cluster, TopicPartition(topic, partition), record)


@pytest.mark.kill_matrix
@pytest.mark.timeout(3600)
def test_a_record_is_a_row_once_wherever_the_driver_dies(
    cluster: Cluster, bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(cluster, partitions=2)
    address = f"delta:{tmp_path}/orders"
    expected = []
    for number, point in enumerate(POINTS):
        for partition in range(2):
            send(cluster, topic, partition, f"{number}-{partition}")
            expected.append(f"{number}-{partition}")
        process = start(bootstrap, topic, address, point)
        _, errors = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == -signal.SIGKILL, errors.decode()
    process = start(bootstrap, topic, address, NEVER)
    assert process.stdout is not None
    send(cluster, topic, 0, "last")
    while sorted(line["item"] for line in read(open_table(address))) != [*expected, "last"]:
        assert process.poll() is None, process.communicate()
        process.stdout.readline()  # A commit's.
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, b"Traceback" in errors) == (0, False), errors.decode()
    assert len(parquet_files(open_table(address))) == len(open_table(address).files())


@pytest.mark.kill_matrix
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_record_is_a_row_once_wherever_maintenance_dies(
    kind: str, cluster: Cluster, bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(cluster, partitions=2)
    address = f"{kind}:{tmp_path}/lake/orders"
    for number, point in enumerate(MAINTENANCE_POINTS):
        for partition in range(2):
            send(cluster, topic, partition, f"{number}-{partition}")
        process = start(bootstrap, topic, address, point)
        _, errors = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == -signal.SIGKILL, errors.decode()
    sync_once(bootstrap, topic, address)
    table = open_table(address)
    table.vacuum(0, dry_run=False)
    for found in check_table(table, topic, bootstrap):
        assert (found.is_right, found.proved, found.unknown) == (True, len(MAINTENANCE_POINTS), 0)
    assert len(parquet_files(table)) == len(table.files())


def sync_once(bootstrap: str, topic: str, address: str) -> None:
    command = [sys.executable, "-m", "ottla", "table", "sync", topic, "--to", address, "--once"]
    subprocess.run([*command, "--bootstrap-server", bootstrap], check=True, timeout=TIMEOUT_S)
