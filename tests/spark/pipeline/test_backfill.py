"""A range is replayed into a sink next to its run: by offsets, so every row is there once."""

from typing import Any

import pytest
from tests.spark.pipeline.conftest import Workshop

from ottla.client.wire.topics import ensure_topic
from pyspark_ottla.pipeline import backfill as backfilling
from pyspark_ottla.pipeline.backfill import Summary, Wanted, backfill_pipeline
from pyspark_ottla.pipeline.backfill_file import BackfillFile
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.reset import reset_pipeline
from pyspark_ottla.pipeline.run import PipelineRun, run_pipeline

LATE = """\
name: "{name}"
sources:
  orders:
    topic: "{name}-orders"
    format: json
    schema: id int, at int
    start: latest
    bad-values: quarantine
steps:
  kept: {sql: "select id, at from orders where id % 10 != 9"}
sinks:
  out: {from: kept, SINK}
"""
TOPIC = LATE.replace("SINK", 'topic: "{name}-out"')
DELTA = LATE.replace("SINK", "delta: lake/orders")
ICEBERG = LATE.replace("SINK", "iceberg: lake/orders")


class Died(Exception):
    """Dies like a process, between two steps."""


def orders(*ids: int) -> list[Any]:
    return [{"id": each, "at": each} for each in ids]


def kept(ids: Any) -> list[int]:
    return [each for each in ids if each % 10 != 9]


def backfill(workshop: Workshop, text: str, **wanted: Any) -> Summary:
    return backfill_pipeline(workshop.spark, workshop.load(text), Wanted(["out"], **wanted))


def refused(workshop: Workshop, text: str, **wanted: Any) -> str:
    with pytest.raises(PipelineError) as raised:
        backfill(workshop, text, **wanted)
    return str(raised.value)


def ids(workshop: Workshop, text: str) -> list[int]:
    """Of all rows of the sink."""
    if text is TOPIC:
        return sorted(row["id"] for row in workshop.objects("out"))
    kind = "delta" if text is DELTA else "iceberg"
    table = f"{kind}:{workshop.directory / 'lake' / 'orders'}"
    return sorted(row.id for row in workshop.spark.read.format("ottla_table").load(table).collect())


@pytest.mark.parametrize("text", [TOPIC, DELTA, ICEBERG], ids=["topic", "delta", "iceberg"])
def test_what_was_there_before_the_first_run_is_added_once(workshop: Workshop, text: str) -> None:
    workshop.topic("orders")
    workshop.send("orders", [*orders(*range(30)), "bad"])
    assert "it has not run" in refused(workshop, text)
    run = PipelineRun(workshop.spark, workshop.load(text), once=False)
    run.start()
    try:
        workshop.send("orders", orders(*range(30, 40)))
        done = backfill(workshop, text, start="5", end="20", records_max=4)
        assert sum(each.length for each in done.written["out"]) == 15
        workshop.send("orders", orders(*range(40, 50)))
        # Backfilled records, and those that the run reads, are left out.
        done = backfill(workshop, text, records_max=10)
        assert sum(each.length for each in done.written["out"]) == 5 + 11
        assert backfill(workshop, text).written == {}
    finally:
        run.stop()
        run.wait()
    run_pipeline(workshop.spark, workshop.load(text))
    assert ids(workshop, text) == kept(range(50))


def test_what_is_refused_in_the_range_goes_to_the_dead_letters_once(workshop: Workshop) -> None:
    workshop.topic("orders")
    workshop.send("orders", ["bad", *orders(1)])
    text = TOPIC.replace("sources:", 'dead-letter-topic: "{name}-dead"\nsources:', 1)
    workshop.run(text)
    workshop.send("orders", ["worse"])
    workshop.run(text)
    assert workshop.values("dead") == ["worse"]
    backfill(workshop, text)
    backfill(workshop, text)
    assert workshop.values("dead") == ["bad", "worse"]
    assert ids(workshop, TOPIC) == [1]


@pytest.mark.parametrize("text", [TOPIC, DELTA, ICEBERG], ids=["topic", "delta", "iceberg"])
def test_one_that_died_goes_on_where_it_was(
    workshop: Workshop, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.topic("orders")
    workshop.send("orders", orders(*range(20)))
    workshop.run(text)

    def die(*_: Any, **__: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(BackfillFile, "advance", die)  # The sink has the portion, the file does not.
        with pytest.raises(Died):
            backfill(workshop, text, records_max=6)
    with monkeypatch.context() as patch:
        patch.setattr(backfilling, "write_batch", die)
        with pytest.raises(Died):
            backfill(workshop, text, records_max=6)
    # Other portions are requested now; started ones are finished first.
    backfill(workshop, text, records_max=100)
    assert ids(workshop, text) == kept(range(20))


def test_what_was_written_before_a_reset_counts_unless_the_target_was_emptied(
    workshop: Workshop,
) -> None:
    workshop.topic("orders")
    early = TOPIC.replace("start: latest", "start: earliest")
    workshop.send("orders", orders(*range(5)))
    workshop.run(early)
    workshop.send("orders", orders(*range(5, 9)))
    reset_pipeline(workshop.load(early), "latest")
    workshop.run(early)
    workshop.send("orders", orders(10))
    workshop.run(early)
    assert ids(workshop, TOPIC) == [0, 1, 2, 3, 4, 10]
    done = backfill(workshop, early)
    assert [str(each) for each in done.written["out"]] == [f"{workshop.name}-orders-0 5 to 8"]
    assert ids(workshop, TOPIC) == [*range(9), 10]
    again = backfill(workshop, early, is_emptied=True)
    assert [str(each) for each in again.written["out"]] == [f"{workshop.name}-orders-0 0 to 4"]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_newer_row_of_a_table_with_a_key_stays(workshop: Workshop, kind: str) -> None:
    workshop.topic("orders")
    workshop.send("orders", [{"id": 1, "at": 1}, {"id": 2, "at": 2}, {"id": 3, "at": 3}])
    text = LATE.replace("SINK", f"{kind}: lake/orders, key: id, order-by: at")
    workshop.run(text)
    workshop.send("orders", [{"id": 2, "at": 20}, {"id": 4, "at": 4}])
    workshop.run(text)
    for _ in range(2):  # A row replaces itself.
        backfill(workshop, text)
        table = f"{kind}:{workshop.directory / 'lake' / 'orders'}"
        rows = workshop.spark.read.format("ottla_table").load(table).collect()
        assert sorted((row.id, row.at) for row in rows) == [(1, 1), (2, 20), (3, 3), (4, 4)]


@pytest.mark.parametrize(
    ("sink", "step", "message"),
    [
        ("parquet: files", "", "so a backfill cannot add to it; use delta or iceberg"),
        ("console: true", "", "the console keeps nothing"),
        ("delta: lake/x, key: id", "", "an older row would replace a newer one of the same key"),
        ("delta: l/x, key: id, order-by: at, deleted: gone", ", false as gone", "would come back"),
        ('topic: "{name}-out"', "GROUP", "its steps aggregate, join or keep state"),
    ],
)
def test_what_cannot_be_backfilled(workshop: Workshop, sink: str, step: str, message: str) -> None:
    workshop.topic("orders")
    workshop.send("orders", orders(1))
    text = LATE.replace("SINK", sink)
    if step == "GROUP":
        counted = "select id, count(*) as at from orders group by id"
        text = text.replace("select id, at from orders where id % 10 != 9", counted)
        text = text.replace('-out"}', '-out", mode: update}')
    else:
        text = text.replace("id, at from", f"id, at{step} from")
    assert message in refused(workshop, text)
    with pytest.raises(PipelineError, match="there is no sink nine; there are out"):
        backfill_pipeline(workshop.spark, workshop.load(text), Wanted(["nine"]))


def test_a_compacted_topic_is_not_backfilled(workshop: Workshop) -> None:
    workshop.topic("orders")
    ensure_topic(workshop.cluster, f"{workshop.name}-out", config={"cleanup.policy": "compact"})
    assert "an older value would replace a newer one of its key" in refused(
        workshop, LATE.replace("SINK", 'topic: "{name}-out", key: id')
    )
