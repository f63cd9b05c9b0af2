import json
from pathlib import Path

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.init import guess_format, render, write_pipeline
from pyspark_ottla.pipeline.problems import PipelineError

ORDER = {
    "id": 1,
    "at": "2026-01-01T10:00:00Z",
    "lines": [{"item": "pen", "price": 1.5}],
    "a b": None,
}


def test_objects_become_a_schema_and_times_are_times() -> None:
    values = [json.dumps(ORDER).encode(), b"no json", None, b'{"id": 2, "a b": true}']
    guess = guess_format(values)
    assert guess.fields == {
        "id": "bigint",
        "at": "timestamp",
        "lines": "array<struct<item:string,price:double>>",
        "a b": "boolean",
    }
    assert (guess.format, guess.looked_at, guess.unreadable) == ("json", 4, 1)


def test_names_that_spark_takes_only_quoted_are_quoted() -> None:
    value = {"größe": 1, "2": [{"größe": 1, "a b": {"3d": 1}}], "a1": 1}
    guess = guess_format([json.dumps(value).encode()])
    assert guess.fields["2"] == "array<struct<`größe`:bigint,`a b`:struct<`3d`:bigint>>>"
    text = render("p", "t", "console", "h:1", guess)
    assert "`größe` bigint" in text
    assert "select `größe`, `2`, a1\n" in text


@pytest.mark.parametrize(
    ("values", "kind"),
    [([b"a line", b"{}x"], "string"), ([b"\xff"], "binary"), ([], "binary"), ([None], "binary")],
)
def test_what_is_no_json(values: list[bytes | None], kind: str) -> None:
    assert guess_format(values).format == kind


@pytest.mark.parametrize("sink", ["topic:out", "delta:t", "iceberg:a.b.c", "parquet:p", "console"])
@pytest.mark.parametrize("value", [json.dumps(ORDER).encode(), b"text", b"\xff"])
def test_the_file_is_a_pipeline(tmp_path: Path, sink: str, value: bytes) -> None:
    path = tmp_path / "new one.yaml"
    path.write_text(render(path.stem, "7.some-topic", sink, "h:1", guess_format([value])))
    pipeline = load_pipeline(path)
    assert (pipeline.name, list(pipeline.sources)) == ("new-one", ["t7_some_topic"])
    assert pipeline.sinks["out"].kind == sink.partition(":")[0]


def test_a_topic_of_a_broker(bootstrap: str, tmp_path: Path) -> None:
    with Cluster(bootstrap) as cluster:
        topic = create_topic(cluster, 1)
        record = Record(timestamp=0, key=None, value=json.dumps(ORDER).encode())
        write(cluster, TopicPartition(topic, 0), record)
    path = tmp_path / "orders.yaml"
    assert write_pipeline(path, topic, "console", bootstrap).looked_at == 1
    (source,) = load_pipeline(path).sources.values()
    assert source.watermark is not None
    assert source.watermark.column == "at"
    with pytest.raises(PipelineError, match="is there already"):
        write_pipeline(path, topic, "console", bootstrap)
    with pytest.raises(PipelineError, match=f"there is no topic {topic}x; did you mean {topic}"):
        write_pipeline(tmp_path / "other.yaml", f"{topic}x", "console", bootstrap)
    assert not (tmp_path / "other.yaml").exists()
