import pytest
from tests.pyspark_ottla.sink.written import records
from tests.spark.pipeline.conftest import Workshop

from pyspark_ottla.pipeline.problems import PipelineError

ORDERS = """\
name: "{name}"
dead-letter-topic: "{name}-dead"
sources:
  orders:
    topic: "{name}-orders"
    format: json
    schema: id int, amount int
    bad-values: quarantine
    expect:
      has_id: {check: id is not null, otherwise: quarantine}
      positive: {check: amount > 0, otherwise: drop}
steps:
  priced:
    sql: select id, amount * 2 as price from orders
    expect:
      affordable: {check: price < 1000, otherwise: quarantine}
sinks:
  out: {from: priced, topic: "{name}-out"}
"""
ROWS = [
    {"id": 1, "amount": 5},
    {"id": 2, "amount": -5},  # Dropped.
    {"amount": 7},  # Quarantined by the source.
    "no json",  # Quarantined by the source.
    {"id": 3},  # Dropped: a check that is null is not true.
    {"id": 4, "amount": 600},  # Quarantined by the step.
    {"id": 5, "amount": 6},
]


@pytest.fixture
def orders(workshop: Workshop) -> Workshop:
    workshop.topic("orders")
    workshop.send("orders", ROWS, key=lambda row: str(row)[:5])
    return workshop


def test_rows_that_are_not_as_expected_go_where_they_should(orders: Workshop) -> None:
    progress = orders.run(ORDERS)
    assert orders.objects("out") == [{"id": 1, "price": 10}, {"id": 5, "price": 12}]
    out = progress.queries["out"]
    assert out.refused == {
        "orders.has_id": 1,
        "orders.positive": 2,
        "orders.bad value": 1,
        "priced.affordable": 1,
    }
    dead = records(orders.cluster, f"{orders.name}-dead")
    letters = sorted(
        (
            record.value,
            record.key,
            {name: value.decode() for name, value in record.headers if value},
        )
        for written in dead.values()
        for record in written
    )
    origin = {
        "ottla.pipeline": orders.name,
        "ottla.dataset": "orders",
        "ottla.topic": f"{orders.name}-orders",
        "ottla.partition": "0",
    }
    assert letters == [
        (
            b"no json",
            b"no js",
            {
                **origin,
                "ottla.reason": "bad value",
                "ottla.detail": "Expecting value: line 1 column 1 (char 0)",
                "ottla.offset": "3",
            },
        ),
        (
            b'{"amount": 7}',
            b"{'amo",
            {**origin, "ottla.reason": "has_id", "ottla.offset": "2"},
        ),
        (
            b'{"id":4,"price":1200}',
            None,
            {
                "ottla.pipeline": orders.name,
                "ottla.dataset": "priced",
                "ottla.reason": "affordable",
            },
        ),
    ]


def test_a_row_that_must_not_be_stops_the_run_and_is_shown(orders: Workshop) -> None:
    text = ORDERS.replace("otherwise: drop", "otherwise: fail")
    with pytest.raises(PipelineError) as raised:
        orders.run(text)
    message = str(raised.value)
    assert "a row is not as positive expects (amount > 0)" in message
    assert '"id":2,"amount":-5' in message
    fixed = orders.run(ORDERS)  # The failed run has left nothing behind.
    assert fixed.queries["out"].rows_out == 2
    assert orders.objects("out") == [{"id": 1, "price": 10}, {"id": 5, "price": 12}]


def test_values_that_are_none_can_be_dropped(orders: Workshop) -> None:
    progress = orders.run(
        """\
        name: "{name}"
        sources:
          orders:
            topic: "{name}-orders"
            format: json
            schema: id int, amount int
            bad-values: drop
        sinks:
          out: {from: orders, topic: "{name}-out"}
        """
    )
    assert progress.queries["out"].refused == {"orders.bad value": 1}
    assert len(orders.objects("out")) == len(ROWS) - 1
