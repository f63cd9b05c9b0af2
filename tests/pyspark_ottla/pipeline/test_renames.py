from pathlib import Path

import pytest

from pyspark_ottla.pipeline.backfill_file import BackfillFile
from pyspark_ottla.pipeline.changes import with_record
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.record import Record, RecordFile, Written
from pyspark_ottla.pipeline.renames import adopt_renamed, find_renamed
from pyspark_ottla.pipeline.run_lock import BACKFILL, RunLock
from pyspark_ottla.pipeline.shape import Shape, describe_sink
from pyspark_ottla.pipeline.stretches import Stretch
from pyspark_ottla.pipeline.writers import sink_id

TEXT = """\
name: lines
sources:
  lines: {topic: lines}
sinks:
  out: {from: lines, topic: out, format: record}
"""
RENAMED = TEXT.replace("  out: {", "  copied: {")
PART = Stretch("lines", "lines", 0, 0, 9)


def load(directory: Path, text: str) -> Pipeline:
    path = directory / "lines.yaml"
    path.write_text(text)
    return load_pipeline(path)


@pytest.fixture
def has_run(tmp_path: Path) -> Path:
    """A directory with a pipeline that has run, was reset once, and was backfilled."""
    pipeline = load(tmp_path, TEXT)
    Path(pipeline.checkpoints, "out").mkdir(parents=True)
    shape = Shape([["lines", "lines"]], [], {}, describe_sink(pipeline.sinks["out"]), {})
    written = [Written("out", "topic out", [PART])]
    begins = {"out": {"lines": "{}"}}
    record = Record({"out": shape}, {"out": 1}, begins=begins, written=written)
    RecordFile(pipeline).write(record)
    BackfillFile(pipeline).add("out", "topic out", [PART], 100)
    return tmp_path


def test_what_it_had_is_its_own_under_the_new_name(has_run: Path) -> None:
    pipeline = load(has_run, RENAMED)
    record = adopt_renamed(pipeline, RecordFile(pipeline))
    assert record == RecordFile(pipeline).read()
    assert list(record.shapes) == list(record.generations) == list(record.begins) == ["copied"]
    assert [each.query for each in record.written] == ["copied"]
    assert [each.query for each in BackfillFile(pipeline).read()] == ["copied"]
    assert Path(pipeline.checkpoints, "copied").is_dir()
    assert not Path(pipeline.checkpoints, "out").exists()
    running = with_record(pipeline, record)
    assert sink_id(running, running.sinks["copied"]) == "lines-out-r1"
    # And back, and a third time.
    for text, name in ((TEXT, "out"), (RENAMED, "copied")):
        again = load(has_run, text)
        running = with_record(again, adopt_renamed(again, RecordFile(again)))
        assert sink_id(running, running.sinks[name]) == "lines-out-r1"


def test_one_that_died_between_is_finished(has_run: Path) -> None:
    pipeline = load(has_run, RENAMED)
    Path(pipeline.checkpoints, "out").rename(Path(pipeline.checkpoints, "copied"))
    assert list(adopt_renamed(pipeline, RecordFile(pipeline)).shapes) == ["copied"]


def test_another_target_is_another_sink(has_run: Path) -> None:
    pipeline = load(has_run, RENAMED.replace("topic: out", "topic: other"))
    record = adopt_renamed(pipeline, RecordFile(pipeline))
    assert find_renamed(pipeline, record) == {}
    assert list(record.shapes) == ["out"]
    assert Path(pipeline.checkpoints, "out").is_dir()


def test_not_while_a_backfill_writes(has_run: Path) -> None:
    pipeline = load(has_run, RENAMED)
    lock = RunLock(pipeline, name=BACKFILL)
    lock.take()
    with pytest.raises(PipelineError, match="a sink was renamed, and a backfill of it runs"):
        adopt_renamed(pipeline, RecordFile(pipeline))
    lock.give_back()
    assert Path(pipeline.checkpoints, "out").is_dir()
