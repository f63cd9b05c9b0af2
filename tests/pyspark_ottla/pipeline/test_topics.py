from pathlib import Path

from tests.client.topics import create_topic

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.topics import ensure_topic
from ottla.testing import EmbeddedBroker
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.topics import is_compacted, make_topics

TEXT = """\
name: lines
sources:
  lines: {topic: "TOPIC"}
sinks:
  near: {from: lines, topic: TOPIC-near, partitions: 2}
  far: {from: lines, topic: TOPIC-far, options: {kafka.bootstrap.servers: "OTHER"}}
"""


def test_the_topic_of_a_sink_is_made_in_the_cluster_that_the_sink_names(
    bootstrap: str, ottla_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    other = ottla_broker.bootstrap_servers
    with Cluster(bootstrap) as here, Cluster(other) as there:
        topic = create_topic(here, 1)
        near, far = f"{topic}-near", f"{topic}-far"
        path = tmp_path / "lines.yaml"
        path.write_text(TEXT.replace("TOPIC", topic).replace("OTHER", other))
        pipeline = load_pipeline(path, bootstrap_servers=bootstrap)
        assert make_topics(pipeline) == [near, far]
        assert here.topics([near])[near].leaders.keys() == {0, 1}
        assert far in there.topics([far])
        assert far not in here.topics([far])
        assert make_topics(pipeline) == []


def test_a_compacted_topic_is_known(bootstrap: str, tmp_path: Path) -> None:
    with Cluster(bootstrap) as cluster:
        topic = create_topic(cluster, 1)
        path = tmp_path / "lines.yaml"
        path.write_text(TEXT.replace("TOPIC", topic).replace("OTHER", bootstrap))
        pipeline = load_pipeline(path, bootstrap_servers=bootstrap)
        near, far = pipeline.sinks["near"], pipeline.sinks["far"]
        assert not is_compacted(pipeline, near)
        ensure_topic(cluster, near.target, config={"cleanup.policy": "compact,delete"})
        ensure_topic(cluster, far.target)
        assert is_compacted(pipeline, near)
        assert not is_compacted(pipeline, far)
