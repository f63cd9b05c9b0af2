"""Changes by producers in a source's values, and schemas published for a sink's consumers."""

from typing import Any

import pytest
from tests.pyspark_ottla.sink.written import values
from tests.spark.pipeline.conftest import Workshop

from pyspark_ottla.pipeline.expectations import HEADER_DETAIL, HEADER_REASON
from pyspark_ottla.pipeline.forecast import forecast
from pyspark_ottla.pipeline.published import read_published

EVOLVING = """\
name: "{name}"
dead-letter-topic: "{name}-dead"
sources:
  orders:
    topic: "{name}-orders"
    format: json
    schema: id int, amount double
    evolution: {added: take}
steps:
  all_of_it: {sql: "select * from orders"}
sinks:
  out: {from: all_of_it, topic: "{name}-out", publish-schema: true}
"""


def headers(workshop: Workshop, topic: str) -> list[dict[str, str]]:
    rows = (
        workshop.spark.read.format("ottla")
        .option("kafka.bootstrap.servers", workshop.bootstrap)
        .option("subscribe", f"{workshop.name}-{topic}")
        .option("includeHeaders", "true")
        .load()
        .collect()
    )
    return [{each.key: bytes(each.value).decode() for each in row.headers} for row in rows]


def test_added_fields_become_columns_and_values_of_other_types_are_refused(
    workshop: Workshop,
) -> None:
    workshop.topic("orders")
    workshop.send("orders", [{"id": 1, "amount": 1.5}])
    workshop.run(EVOLVING)
    assert workshop.objects("out") == [{"id": 1, "amount": 1.5}]
    schema: Any = read_published(workshop.cluster, f"{workshop.name}-out")
    assert list(schema["properties"]) == ["id", "amount"]

    workshop.send("orders", [{"id": 2, "amount": 2.5, "coupon": "may", "count": 3}])
    workshop.send("orders", [{"id": "3", "amount": 3.5}])
    (planned,) = forecast(workshop.spark, workshop.load(EVOLVING))
    assert {change.message for change in planned.changes} == {
        "new column coupon string",
        "new column count bigint",
    }
    workshop.run(EVOLVING)
    two = {"id": 2, "amount": 2.5, "coupon": "may", "count": 3}
    assert sorted(workshop.objects("out"), key=lambda row: row["id"]) == [
        {"id": 1, "amount": 1.5},
        two,
    ]
    (letter,) = headers(workshop, "dead")
    assert letter[HEADER_REASON] == "bad value"
    assert letter[HEADER_DETAIL] == "id: '3' where a whole number must be"
    schema = read_published(workshop.cluster, f"{workshop.name}-out")
    assert list(schema["properties"]) == ["id", "amount", "coupon", "count"]

    # An inferred field keeps its type, even if the newest records lack it.
    workshop.send("orders", [{"id": 4, "count": "many"}, {"id": 5}])
    workshop.run(EVOLVING)
    details = {letter[HEADER_DETAIL] for letter in headers(workshop, "dead")}
    assert "count: 'many' where a whole number must be" in details
    assert {"id": 5, "amount": None, "coupon": None, "count": None} in workshop.objects("out")
    assert len(values(workshop.cluster, f"{workshop.name}-out")) == 3


def test_fields_that_are_not_to_be_taken_are_left_out(workshop: Workshop) -> None:
    workshop.topic("orders")
    workshop.send("orders", [{"id": 1, "amount": 1.5, "coupon": "may"}])
    workshop.run(EVOLVING.replace("added: take", "added: ignore"))
    assert workshop.objects("out") == [{"id": 1, "amount": 1.5}]


def test_evolution_needs_fields(workshop: Workshop) -> None:
    from pyspark_ottla.pipeline.problems import PipelineError

    with pytest.raises(PipelineError, match="evolution is for format json with a schema of fields"):
        workshop.load(EVOLVING.replace("id int, amount double", "array<int>"))
