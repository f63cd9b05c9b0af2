"""A pipeline changed after a run continues correctly, or stops before anything is written."""

from typing import Any

import pytest
from tests.spark.pipeline.conftest import Workshop

from pyspark_ottla.pipeline.forecast import Forecast, forecast
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.reset import reset_pipeline
from pyspark_ottla.pipeline.run import run_pipeline

PIPELINE = """\
name: "{name}"
sources:
  clicks:
    topic: "{name}-clicks"
    format: json
    schema: at timestamp, page string
    watermark: {column: at, delay: 1 minute}
steps:
  counts:
    sql: |
      select window.start as start, count(*) as clicks
      from clicks
      group by window(at, '1 minute')
sinks:
  out: {from: counts, topic: "{name}-out"}
"""
FIVE = PIPELINE.replace("1 minute')", "5 minutes')")


def click(minute: int) -> dict[str, str]:
    return {"at": f"2026-01-01T10:{minute:02}:30Z", "page": "/"}


def start(minute: int, clicks: int, **more: Any) -> dict[str, Any]:
    return {"start": f"2026-01-01T10:{minute:02}:00.000Z", "clicks": clicks} | more


def refused(workshop: Workshop, text: str) -> str:
    with pytest.raises(PipelineError) as raised:
        workshop.run(text)
    return str(raised.value)


def planned(workshop: Workshop, text: str) -> Forecast:
    (found,) = forecast(workshop.spark, workshop.load(text))
    return found


def test_a_state_is_not_used_by_another_query(workshop: Workshop) -> None:
    workshop.topic("clicks")
    workshop.send("clicks", [click(0), click(0), click(9)])
    assert planned(workshop, PIPELINE).next_run.startswith("starts at earliest, into")
    workshop.run(PIPELINE)
    assert workshop.objects("out") == [start(0, 2)]
    workshop.send("clicks", [click(11)])

    going_on = planned(workshop, PIPELINE)
    assert going_on.changes == []
    assert "with 1 record to read" in going_on.next_run
    problem = refused(workshop, FIVE)
    assert ":15: sink out: its state was made by another query (step counts had" in problem
    assert "window(at, '5 minutes')" in problem
    assert "`ottla pipeline reset`" in problem
    more = PIPELINE.replace("as clicks\n", "as clicks, max(page) as last\n")
    assert "its state was made by another query" in refused(workshop, more)
    assert workshop.objects("out") == [start(0, 2)]

    # Changes that do not affect state are fine.
    column = PIPELINE.replace("as clicks\n", "as clicks, date(window.start) as day\n")
    (added,) = planned(workshop, column).changes
    assert (added.message, added.is_safe) == ("new column day date", True)
    workshop.run(column)
    written = [start(0, 2), start(9, 1, day="2026-01-01")]
    assert sorted(workshop.objects("out"), key=lambda row: row["start"]) == written


def test_a_sink_that_was_renamed_goes_on(workshop: Workshop) -> None:
    workshop.topic("clicks")
    workshop.send("clicks", [click(0), click(9)])
    workshop.run(PIPELINE)
    renamed = PIPELINE.replace("  out: {", "  totals: {")
    plan = planned(workshop, renamed)
    assert [(change.message, change.is_safe) for change in plan.changes] == [
        ("it was sink out, and continues from that checkpoint", True)
    ]
    assert plan.next_run.startswith("continues where sink out stopped")
    five = renamed.replace("1 minute')", "5 minutes')")
    assert "its state was made by another query" in refused(workshop, five)
    workshop.send("clicks", [click(20)])
    workshop.run(renamed)
    workshop.run(renamed)
    written = [start(0, 1), start(9, 1)]
    assert sorted(workshop.objects("out"), key=lambda row: row["start"]) == written


def test_a_reset_reads_again_from_where_it_is_told(workshop: Workshop) -> None:
    workshop.topic("clicks")
    workshop.send("clicks", [click(0), click(6), click(20)])
    workshop.run(PIPELINE)
    assert len(workshop.objects("out")) == 2
    reset_pipeline(workshop.load(FIVE), "1")
    assert "starts at {" in planned(workshop, FIVE).next_run
    workshop.run(FIVE)
    assert workshop.objects("out").count(start(5, 1)) == 1
    assert len(workshop.objects("out")) == 3
    workshop.run(FIVE)
    assert len(workshop.objects("out")) == 3


def test_another_target_is_taken_if_it_is_said_to_be_meant(workshop: Workshop) -> None:
    workshop.topic("clicks")
    workshop.send("clicks", [click(0), click(9)])
    workshop.run(PIPELINE)
    other = PIPELINE.replace('topic: "{name}-out"', 'topic: "{name}-other"')
    assert f"it wrote to topic {workshop.name}-out and now writes to" in refused(workshop, other)
    workshop.send("clicks", [click(20)])
    run_pipeline(workshop.spark, workshop.load(other), accept_changes=True)
    assert (workshop.objects("out"), workshop.objects("other")) == ([start(0, 1)], [start(9, 1)])
