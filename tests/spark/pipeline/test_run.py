import json
from pathlib import Path

import pytest
from tests.spark.pipeline.conftest import Workshop

from pyspark_ottla.pipeline.problems import PipelineError

ORDERS = """\
name: "{name}"
sources:
  orders:
    topic: "{name}-orders"
    format: json
    schema: customer string, amount int
steps:
  large:
    sql: select customer, amount from orders where amount > 10
sinks:
  out:
    from: large
    topic: "{name}-out"
    key: customer
"""


def order(customer: str, amount: int) -> dict[str, object]:
    return {"customer": customer, "amount": amount}


def test_a_topic_through_sql_into_a_topic_once_over_restarts(workshop: Workshop) -> None:
    workshop.topic("orders")
    workshop.send("orders", [order("anna", 30), order("ben", 5), order("carl", 11)])
    progress = workshop.run(ORDERS).queries["out"]
    assert (progress.rows_in, progress.rows_out, progress.lag) == (3, 2, 0)
    assert workshop.objects("out") == [order("anna", 30), order("carl", 11)]
    workshop.send("orders", [order("dora", 12)])
    again = workshop.run(ORDERS).queries["out"]
    assert (again.rows_in, again.rows_out) == (1, 1)
    assert workshop.objects("out") == [order("anna", 30), order("carl", 11), order("dora", 12)]


def test_a_batch_that_spark_repeats_is_written_once(workshop: Workshop) -> None:
    workshop.topic("orders")
    workshop.send("orders", [order("anna", 30)])
    workshop.run(ORDERS)
    commits = Path(workshop.load(ORDERS).checkpoints, "out", "commits")
    last = max(commits.glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (last, last.with_name(f".{last.name}.crc")):
        path.unlink(missing_ok=True)  # As if Spark had died before the commit.
    workshop.run(ORDERS)
    assert workshop.objects("out") == [order("anna", 30)]


def test_records_as_they_are_keep_their_keys_and_times(workshop: Workshop) -> None:
    workshop.topic("raw")
    workshop.send("raw", ["a", "b"], key=str.upper)
    workshop.run(
        """\
        name: "{name}"
        sources:
          raw: {topic: "{name}-raw"}
        steps:
          kept: {sql: "select key, value, timestamp from raw"}
        sinks:
          copy: {from: kept, topic: "{name}-copy", format: record}
        """
    )
    rows = (
        workshop.spark.read.format("ottla")
        .option("kafka.bootstrap.servers", workshop.bootstrap)
        .option("subscribe", f"{workshop.name}-copy")
        .load()
        .selectExpr("string(key)", "string(value)", "unix_millis(timestamp) as ms")
        .collect()
    )
    assert sorted(map(tuple, rows)) == [("A", "a", 0), ("B", "b", 1)]


def test_parquet_in_partitions(workshop: Workshop) -> None:
    workshop.topic("orders")
    workshop.send("orders", [order("anna", 30), order("ben", 50), order("anna", 70)])
    text = ORDERS.replace('topic: "{name}-out"\n    key:', "parquet: files\n    partition-by:")
    workshop.run(text)
    files = workshop.directory / "files"
    assert sorted(path.name for path in files.glob("customer=*")) == [
        "customer=anna",
        "customer=ben",
    ]
    read = workshop.spark.read.parquet(str(files))
    assert sorted(row.amount for row in read.collect()) == [30, 50, 70]


def test_an_iceberg_table(workshop: Workshop) -> None:
    workshop.topic("orders")
    workshop.send("orders", [order("anna", 30), order("ben", 50)])
    text = ORDERS.replace('topic: "{name}-out"\n', "iceberg: lake/orders\n")
    workshop.run(text)
    workshop.send("orders", [order("anna", 70), order("carl", 12)])
    again = workshop.run(text).queries["out"]
    assert (again.rows_in, again.rows_out) == (2, 2)
    table = f"iceberg:{workshop.directory / 'lake' / 'orders'}"
    rows = workshop.spark.read.format("ottla_table").load(table).collect()
    assert {row.customer: row.amount for row in rows} == {"anna": 70, "ben": 50, "carl": 12}
    assert len(rows) == 3


def test_the_console(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.topic("orders")
    workshop.send("orders", [order("anna", 30)])
    text = ORDERS.replace('topic: "{name}-out"\n    key: customer', "console: true")
    workshop.run(text)
    assert "|    anna|    30|" in capsys.readouterr().out


def test_a_value_that_is_none_of_the_schema_stops_the_run(workshop: Workshop) -> None:
    workshop.topic("orders")
    workshop.send("orders", ["no json"])
    with pytest.raises(PipelineError, match="value at offset 0 is not json of the schema"):
        workshop.run(ORDERS)


def test_a_watermark_and_windows(workshop: Workshop) -> None:
    workshop.topic("clicks")
    times = ["10:00:05", "10:00:40", "10:01:10", "10:09:00"]
    workshop.send("clicks", [{"at": f"2026-01-01T{time}Z"} for time in times])
    workshop.run(
        """\
        name: "{name}"
        sources:
          clicks:
            topic: "{name}-clicks"
            format: json
            schema: at timestamp
            watermark: {column: at, delay: 1 minute}
        steps:
          per_minute:
            sql: |
              select window.start as minute, count(*) as clicks
              from clicks group by window(at, '1 minute')
        sinks:
          out: {from: per_minute, topic: "{name}-out"}
        """
    )
    found = sorted(workshop.objects("out"), key=lambda row: str(row["minute"]))
    assert found == [
        {"minute": "2026-01-01T10:00:00.000Z", "clicks": 2},
        {"minute": "2026-01-01T10:01:00.000Z", "clicks": 1},
    ], json.dumps(found)


def test_lineage_of_runs_that_end_and_fail(workshop: Workshop) -> None:
    workshop.topic("orders")
    workshop.send("orders", [order("anna", 30), order("ben", 5)])
    text = ORDERS.replace("sources:", "lineage: lineage.jsonl\nsources:", 1)
    workshop.run(text)
    workshop.send("orders", ["no json"])
    with pytest.raises(PipelineError):
        workshop.run(text)
    lines = (workshop.directory / "lineage.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert [each["eventType"] for each in events] == ["START", "COMPLETE", "START", "FAIL"]
    (output,) = events[1]["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert [each["name"] for each in output["facets"]["schema"]["fields"]] == ["customer", "amount"]
    assert "is not json of the schema" in events[3]["run"]["facets"]["errorMessage"]["message"]
