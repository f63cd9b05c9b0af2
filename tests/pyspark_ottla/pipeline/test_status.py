import json
import os
from pathlib import Path

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.records.builder import Record
from pyspark_ottla.pipeline.backfill_file import BackfillFile
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.reset import reset_pipeline
from pyspark_ottla.pipeline.run_lock import BACKFILL, RunLock, find_runner
from pyspark_ottla.pipeline.status import find_status
from pyspark_ottla.pipeline.stretches import Stretch


def pipeline(directory: Path, topic: str = "lines", bootstrap: str = "") -> Pipeline:
    path = directory / "lines.yaml"
    path.write_text(
        f'name: lines\nsources:\n  lines: {{topic: "{topic}"}}\n'
        "sinks:\n  out: {from: lines, topic: out, format: record}\n"
    )
    return load_pipeline(path, bootstrap_servers=bootstrap)


def test_how_far_it_is(bootstrap: str, tmp_path: Path) -> None:
    with Cluster(bootstrap) as cluster:
        topic = create_topic(cluster, 2)
        records = [Record(timestamp=0, key=None, value=b"x")] * 5
        write(cluster, TopicPartition(topic, 0), *records)
        write(cluster, TopicPartition(topic, 1), *records)
    loaded = pipeline(tmp_path, topic, bootstrap)
    (before,) = find_status(loaded)
    assert (before.batch, before.lag, before.process) == (None, None, None)
    checkpoint = Path(loaded.checkpoints, "out")
    for directory in ("offsets", "commits"):
        (checkpoint / directory).mkdir(parents=True)
    for batch, offset in ((0, 1), (1, 3), (2, 5)):
        offsets = json.dumps({topic: {"0": offset, "1": 5}})
        (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{offsets}")
    for batch in (0, 1):
        (checkpoint / "commits" / str(batch)).write_text("v1\n{}")
    (found,) = find_status(loaded)
    assert (found.batch, found.lag) == (1, 2)
    assert found.committed is not None
    assert found.backfill is None
    file = BackfillFile(loaded)
    begun = file.add("out", "topic out", [Stretch("lines", topic, 0, 0, 5)], records_max=2)
    assert file.advance(begun).done == 1
    (found,) = find_status(loaded)
    assert found.backfill == "1 of 3"


@pytest.mark.parametrize("text", ["", "[]", '{"backfills": [{"query": "out"}]}'])
def test_a_file_that_no_backfill_wrote_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    loaded = pipeline(tmp_path)
    path = Path(loaded.checkpoints, "backfills.json")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(PipelineError, match="is not what a backfill has written"):
        BackfillFile(loaded).read()
    assert path.read_text() == text


def test_one_backfill_at_a_time_beside_a_run(tmp_path: Path) -> None:
    loaded = pipeline(tmp_path)
    run, backfill = RunLock(loaded), RunLock(loaded, name=BACKFILL)
    run.take()
    backfill.take()
    with pytest.raises(
        PipelineError, match=f"a backfill of it runs already, as process {os.getpid()}"
    ):
        RunLock(loaded, name=BACKFILL).take()
    run.give_back()
    with pytest.raises(PipelineError, match=f"a backfill of it runs, as process {os.getpid()}"):
        reset_pipeline(loaded, "earliest")
    backfill.give_back()


def test_one_run_at_a_time(tmp_path: Path) -> None:
    loaded = pipeline(tmp_path)
    first, second = RunLock(loaded), RunLock(loaded)
    assert find_runner(loaded) is None
    first.take()
    assert find_runner(loaded) == os.getpid()
    with pytest.raises(PipelineError, match=f"it runs already, as process {os.getpid()}"):
        second.take()
    with pytest.raises(PipelineError, match="stop it first"):
        reset_pipeline(loaded, "earliest")
    first.give_back()
    assert find_runner(loaded) is None
    second.take()
    second.give_back()
