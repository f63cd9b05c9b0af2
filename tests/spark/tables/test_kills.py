"""Whenever the driver dies, every record is in the table once when a later one has ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.broker_process import REPOSITORY
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.tables.written import parquet_files, read
from tests.spark.tables.kill_driver import NEVER, POINTS

from ottla.client.wire.cluster import Cluster, TopicPartition
from pyspark_ottla.tables.table import open_table

TIMEOUT_S = 170


def start(bootstrap: str, topic: str, table: str, point: str) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
    command = [sys.executable, "-m", "tests.spark.tables.kill_driver"]
    return subprocess.Popen(
        [*command, bootstrap, topic, table, point],
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.timeout(600)
def test_a_record_is_a_row_once_wherever_the_driver_dies(
    cluster: Cluster, bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(cluster, partitions=2)
    address = f"delta:{tmp_path}/orders"
    expected = []
    for number, point in enumerate(POINTS):
        for partition in range(2):
            value = f'{{"item": "{number}-{partition}"}}'
            write(cluster, TopicPartition(topic, partition), value.encode())
            expected.append(f"{number}-{partition}")
        process = start(bootstrap, topic, address, point)
        _, errors = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == -signal.SIGKILL, errors.decode()
    process = start(bootstrap, topic, address, NEVER)
    assert process.stdout is not None
    write(cluster, TopicPartition(topic, 0), b'{"item": "last"}')
    while sorted(line["item"] for line in read(open_table(address))) != [*expected, "last"]:
        assert process.poll() is None, process.communicate()
        process.stdout.readline()  # Of a commit.
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, b"Traceback" in errors) == (0, False), errors.decode()
    assert len(parquet_files(open_table(address))) == len(open_table(address).files())
