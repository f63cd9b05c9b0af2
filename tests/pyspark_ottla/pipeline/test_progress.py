from tests.pyspark_ottla.pipeline.reports import report

from pyspark_ottla.pipeline.progress import Progress, QueryProgress


def progress() -> tuple[Progress, QueryProgress]:
    made = Progress("shop")
    made.add("out", "topic out")
    return made, made.queries["out"]


def test_a_report_of_a_batch() -> None:
    taken, query = progress()
    taken.take("out", report())
    assert (query.batches, query.rows_in, query.rows_out) == (1, 100, 30)
    assert (query.rows_in_per_s, query.rows_out_per_s, query.batch_ms) == (200.0, 60.0, 500)
    assert query.lag == 20
    assert (query.state_rows, query.state_bytes) == (7, 4096)
    assert query.refused == {"orders.positive": 4, "orders.bad value": 1}


def test_a_report_counts_once() -> None:
    taken, query = progress()
    for each in (report(0), report(1), report(0), report(1)):
        taken.take("out", each)
    assert (query.batches, query.rows_in, query.rows_out) == (2, 200, 60)
    assert query.refused["orders.positive"] == 8


def test_a_report_of_nothing_new_is_no_batch() -> None:
    taken, query = progress()
    taken.take("out", report())
    idle = report(0, timestamp="2026-01-01T00:01:00.000Z", rows=0, observedMetrics={})
    taken.take("out", idle)
    assert (query.batches, query.rows_in, query.rows_in_per_s) == (1, 100, 0.0)


def test_a_source_that_knows_no_offsets_has_no_lag() -> None:
    taken, query = progress()
    taken.take(
        "out", report(sources=[{"numInputRows": 0, "endOffset": None, "latestOffset": "null"}])
    )
    assert query.lag == 0


def test_a_report_that_came_through_spark_connect() -> None:
    taken, query = progress()
    schema = {"type": "struct", "fields": [{"name": "rows", "type": "long"}]}
    taken.take("out", report(observedMetrics={"rows.out": {"values": [30], "schema": schema}}))
    assert query.rows_out == 30
