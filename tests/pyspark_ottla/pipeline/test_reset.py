from dataclasses import replace
from pathlib import Path

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record as Sent
from pyspark_ottla.pipeline.changes import with_record
from pyspark_ottla.pipeline.coverage import fix_begins
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.record import Record, RecordFile, Written
from pyspark_ottla.pipeline.reset import reset_pipeline
from pyspark_ottla.pipeline.shape import Shape
from pyspark_ottla.pipeline.stretches import Stretch
from pyspark_ottla.pipeline.writers import sink_id

SHAPE = Shape([["lines", "lines"]], [], {}, {}, {})
TEXT = """\
name: lines
sources:
  lines: {topic: "TOPIC"}
sinks:
  out: {from: lines, topic: out, format: record}
  other: {from: lines, topic: other, format: record, sink-id: mine}
"""


@pytest.fixture
def cluster(bootstrap: str) -> Cluster:
    return Cluster(bootstrap)


@pytest.fixture
def pipeline(cluster: Cluster, bootstrap: str, tmp_path: Path) -> Pipeline:
    """A pipeline that has run over five records at 0 to 4 seconds."""
    with cluster:
        topic = create_topic(cluster, 1)
        records = [Sent(timestamp=1000 * n, key=None, value=b"x") for n in range(5)]
        write(cluster, TopicPartition(topic, 0), *records)
    path = tmp_path / "lines.yaml"
    path.write_text(TEXT.replace("TOPIC", topic))
    loaded = load_pipeline(path, bootstrap_servers=bootstrap)
    for sink in loaded.sinks:
        Path(loaded.checkpoints, sink).mkdir(parents=True)
    RecordFile(loaded).write(Record({"out": SHAPE, "other": SHAPE}))
    return loaded


def offset_of(pipeline: Pipeline, start: str) -> int:
    (offsets,) = reset_pipeline(pipeline, start).starts.values()
    (offset,) = offsets.values()
    return offset


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        ("earliest", 0),
        ("latest", 5),
        ("3", 3),
        ("99", 5),
        ("1970-01-01T00:00:02Z", 2),
        ("1970-01-01T00:00:03", 3),
        ("2100-01-01", 5),
    ],
)
def test_where_the_next_run_begins(pipeline: Pipeline, start: str, offset: int) -> None:
    assert offset_of(pipeline, start) == offset


def test_a_reset_that_died_before_it_renamed_checkpoints_is_finished_by_the_next_run(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            reset_pipeline(pipeline, "2")
    directory = Path(pipeline.checkpoints)
    assert (directory / "out").exists()
    record = RecordFile(pipeline).read()
    assert record.generations["out"] == 1
    assert not (directory / "out").exists()
    assert (directory / "out.before-reset-1").is_dir()
    (directory / "out").mkdir()  # Of the new run.
    (directory / "out.before-reset-1").rmdir()
    assert not RecordFile(pipeline).read().set_aside
    assert (directory / "out").exists()


def test_sinks_get_new_ids_and_checkpoints_are_set_aside(pipeline: Pipeline) -> None:
    done = reset_pipeline(pipeline, "2")
    directory = Path(pipeline.checkpoints)
    assert done.set_aside == [f"{directory}/{name}.before-reset-1" for name in ("out", "other")]
    assert all(Path(path).is_dir() for path in done.set_aside)
    assert not (directory / "out").exists()
    record = RecordFile(pipeline).read()
    assert record.shapes == {}
    again = with_record(pipeline, record)
    (topic,) = pipeline.sources["lines"].topics
    assert again.sources["lines"].start == f'{{"{topic}": {{"0": 2}}}}'
    assert [sink_id(again, sink) for sink in again.sinks.values()] == ["lines-out-r1", "mine-r1"]
    reset_pipeline(pipeline, "earliest")
    again = with_record(pipeline, RecordFile(pipeline).read())
    assert sink_id(again, again.sinks["out"]) == "lines-out-r2"


def test_what_was_written_is_remembered_with_its_target(pipeline: Pipeline) -> None:
    (topic,) = pipeline.sources["lines"].topics
    checkpoint = Path(pipeline.checkpoints, "out")
    for name, end in (("offsets/3", 4), ("commits/3", 4), ("offsets/4", 5)):
        path = checkpoint / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'v1\n{{}}\n{{"{topic}": {{"0": {end}}}}}')
    shape = Shape([["lines", topic]], [], {}, {"kind": "topic", "target": "before"}, {})
    begins = {"out": {"lines": f'{{"{topic}": {{"0": 1}}}}'}}
    RecordFile(pipeline).write(Record({"out": shape}, begins=begins))
    reset_pipeline(pipeline, "latest")
    record = RecordFile(pipeline).read()
    # The sink does not know the last batch, so it was not written.
    assert record.written == [Written("out", "topic before", [Stretch("lines", topic, 0, 1, 4)])]
    assert record.begins == {}


def test_where_queries_begin_is_known_from_the_first_run_on(
    pipeline: Pipeline, bootstrap: str
) -> None:
    source = pipeline.sources["lines"]
    late = replace(pipeline, sources={"lines": replace(source, start="latest")})
    (topic,) = source.topics
    fixed, begins = fix_begins(late, RecordFile(late))
    text = f'{{"{topic}": {{"0": 5}}}}'
    assert begins == {"out": {"lines": text}, "other": {"lines": text}}
    assert fixed.sources["lines"].start == text
    RecordFile(late).write(Record(begins=begins))
    with Cluster(bootstrap) as cluster:
        write(cluster, TopicPartition(topic, 0), Sent(timestamp=9000, key=None, value=b"x"))
    assert fix_begins(late, RecordFile(late))[1] == begins
    early, begins = fix_begins(pipeline, RecordFile(pipeline))
    assert early.sources["lines"].start == "earliest"
    assert begins["out"] == {"lines": f'{{"{topic}": {{"0": 0}}}}'}


def test_one_sink_alone(pipeline: Pipeline) -> None:
    assert reset_pipeline(pipeline, "earliest", ["other"]).queries == ["other"]
    assert Path(pipeline.checkpoints, "out").is_dir()
    record = RecordFile(pipeline).read()
    assert record.shapes == {"out": SHAPE}
    assert record.generations == {"other": 1}


@pytest.mark.parametrize(
    ("start", "sinks", "message"),
    [
        ("yesterday", [], "'yesterday' is no offset or time; give earliest, latest, an offset"),
        ("earliest", ["nine"], "there is no sink nine; there are out, other"),
    ],
)
def test_what_cannot_be(pipeline: Pipeline, start: str, sinks: list[str], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        reset_pipeline(pipeline, start, sinks)
    assert Path(pipeline.checkpoints, "out").is_dir()
    assert RecordFile(pipeline).read().generations == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"shapes": {"out": {"x": 1}}}'])
def test_a_record_that_is_none_is_refused_and_kept(pipeline: Pipeline, text: str) -> None:
    path = Path(pipeline.checkpoints, "ottla.json")
    path.write_text(text)
    with pytest.raises(PipelineError, match="is not what a run has written"):
        reset_pipeline(pipeline, "earliest")
    assert path.read_text() == text
    assert Path(pipeline.checkpoints, "out").is_dir()
