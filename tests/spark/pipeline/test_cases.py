"""Tests of pipelines and previews, on a real Spark."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tests.fork_server import REPOSITORY
from tests.spark.pipeline.conftest import Workshop

from pyspark_ottla.pipeline.case_run import run_case
from pyspark_ottla.pipeline.cases import find_cases
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.preview import preview_pipeline
from pyspark_ottla.pipeline.problems import PipelineError

EXAMPLE = REPOSITORY / "examples" / "pipelines" / "orders-per-minute.yaml"
SMALL = """\
name: small
sources:
  orders:
    topic: orders
    format: json
    schema: customer string, amount int
    expect:
      plausible: {check: amount < 1000, otherwise: fail}
steps:
  large: {sql: "select customer, amount from orders where amount > 10"}
sinks:
  out: {from: large, topic: out, key: customer}
tests:
  large_orders:
    given: {orders: [{customer: anna, amount: 30}, {customer: ben, amount: 5}]}
    expect: {out: [{customer: anna, amount: 31}, {customer: carl, amount: 1}]}
  implausible:
    given: {orders: [{customer: anna, amount: 3000}]}
    fails: a row is not as plausible expects
  unreadable:
    given: {orders: [no json]}
    fails: not json of the schema
"""


def test_the_tests_of_an_example_pass_and_notice_a_change(spark: Any) -> None:
    pipeline = load_pipeline(EXAMPLE)
    cases = find_cases(pipeline)
    outcomes = [run_case(spark, pipeline, case) for case in cases]
    assert [outcome.failures for outcome in outcomes] == [[], [], []]
    over = cases[0]
    changed = dataclasses.replace(over.batches[0], watermark="2026-01-01T10:08:00Z")
    outcome = run_case(spark, pipeline, dataclasses.replace(over, batches=[changed]))
    assert outcome.failures == [
        "totals: the watermark is 2026-01-01T10:07:00.000Z and not 2026-01-01T10:08:00Z"
    ]


def test_a_difference_is_told_and_an_expected_failure_passes(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    pipeline = load_pipeline(path)
    outcomes = {case.name: run_case(spark, pipeline, case) for case in find_cases(pipeline)}
    assert outcomes["large_orders"].failures == [
        'out: ~ differs     {"customer": "anna", "amount": 31}: amount is 30 and not 31',
        'out: - missing     {"customer": "carl", "amount": 1}',
    ]
    assert outcomes["implausible"].failures == outcomes["unreadable"].failures == []


PREVIEWED = """\
name: "{name}"
sources:
  orders:
    topic: "{name}-orders"
    format: json
    schema: customer string, amount int
    bad-values: quarantine
steps:
  totals: {sql: "select customer, sum(amount) as total from orders group by customer"}
sinks:
  out: {from: totals, topic: "{name}-out", mode: update}
"""


def test_a_preview_shows_every_step_and_writes_nothing(workshop: Workshop) -> None:
    workshop.topic("orders")
    rows = [{"customer": f"c{n % 2}", "amount": n} for n in range(10)]
    workshop.send("orders", [*rows, "no json"])
    pipeline = workshop.load(PREVIEWED)
    orders, totals = preview_pipeline(workshop.spark, pipeline, rows=2, sample=5)
    assert (orders.row_count, len(orders.rows), orders.refused) == (4, 2, {"bad value": 1})
    assert orders.rows[0]["amount"] == 6
    assert totals.columns == ["customer", "total"]
    assert sorted(row["total"] for row in totals.rows) == [14, 16]
    assert f"{workshop.name}-out" not in workshop.cluster.topics()
    assert not Path(pipeline.checkpoints).exists()
    with pytest.raises(PipelineError, match="there is no source or step total"):
        list(preview_pipeline(workshop.spark, pipeline, step="total"))
    broken = workshop.load(PREVIEWED.replace("bad-values: quarantine", "bad-values: fail"))
    with pytest.raises(PipelineError, match="bad-values: drop or quarantine lets others through"):
        list(preview_pipeline(workshop.spark, broken))
