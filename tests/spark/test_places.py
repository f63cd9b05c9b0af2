"""Source and sink wherever Spark runs: alone, on a cluster of processes, through Spark Connect."""

import json
from pathlib import Path

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.sink.written import values
from tests.spark.places import Place

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record

ROWS = 100  # In each of two partitions.


@pytest.fixture(params=["local", "standalone", "connect"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.mark.timeout(600)
def test_a_topic_is_read_and_copied_exactly_once(
    place: Place, cluster: Cluster, bootstrap: str, tmp_path: Path
) -> None:
    source, target = create_topic(cluster, partitions=2), create_topic(cluster, partitions=2)
    for partition in range(2):
        records = [
            Record(timestamp=index, key=b"k%d" % (index % 7), value=b"%d-%d" % (partition, index))
            for index in range(ROWS)
        ]
        write(cluster, TopicPartition(source, partition), *records)
    arguments = (bootstrap, source, target, str(tmp_path))
    printed = place.run("tests.spark.programs.copy_topic", *arguments)
    assert json.loads(printed) == {"rows": 2 * ROWS, "later": 10, "keys": 7}
    copied = [f"{partition}-{index}" for partition in range(2) for index in range(ROWS)]
    again = [f"again 0-{index}" for index in range(ROWS)]
    assert values(cluster, target) == sorted(copied + again)
