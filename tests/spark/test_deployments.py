"""Source and sink wherever Spark runs: alone, on a cluster of processes, through Spark Connect."""

import json
from pathlib import Path

import pytest
from tests.pyspark_ottla.sink.written import values
from tests.spark import copied
from tests.spark.deployments import Deployment

from ottla.client.wire.cluster import Cluster


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("deployment", ["local", "standalone", "connect"], indirect=True)
def test_a_topic_is_read_and_copied_exactly_once(
    deployment: Deployment, cluster: Cluster, bootstrap: str, tmp_path: Path
) -> None:
    source, target = copied.make_topics(cluster)
    arguments = (bootstrap, source, target, str(tmp_path))
    printed = deployment.run("tests.spark.programs.copy_topic", *arguments)
    assert json.loads(printed) == copied.PRINTED
    assert values(cluster, target) == copied.written()
