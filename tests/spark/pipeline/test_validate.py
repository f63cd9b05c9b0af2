import pytest
from tests.spark.pipeline.conftest import Workshop

from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.validate import validate_pipeline

PIPELINE = """\
name: "{name}"
sources:
  orders:
    topic: "{name}-orders"
    format: json
    schema: customer string, amount int, at timestamp
    expect:
      positive: {check: amount > 0, otherwise: drop}
steps:
  totals:
    sql: |
      select customer,
             sum(amount) as total
      from orders group by customer
sinks:
  out:
    from: totals
    topic: "{name}-out"
    key: customer
    mode: update
"""


@pytest.fixture
def orders(workshop: Workshop) -> Workshop:
    workshop.topic("orders")
    return workshop


def test_a_good_one(orders: Workshop) -> None:
    frames = validate_pipeline(orders.spark, orders.load(PIPELINE))
    assert frames.good["totals"].columns == ["customer", "total"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("-orders", "-ordres", 4, "did you mean {name}-orders?"),
        ("customer string,", "customer string collate none,", 6, "source orders:"),
        ("amount > 0", "amuont > 0", 8, "expect positive of orders: A column"),
        ("select customer,\n", "select custmer,\n", 12, "`custmer` cannot be resolved"),
        ("sum(amount)", "sum(amuont)", 13, "`amuont` cannot be resolved"),
        ("from orders group", "from order group", 14, "step totals:"),
        ("from orders", "fram orders", 14, "step totals: Syntax error"),
        ("key: customer", "key: custmer", 19, "`custmer` cannot be resolved"),
        ("mode: update", "mode: append", 16, "sink out: mode append:"),
        ("mode: update", "format: record", 16, "column customer cannot be written"),
        ("mode: update", "options: {delivry: x}", 16, "did you mean delivery?"),
        ('topic: "{name}-out"', 'topic: "{name}-orders"', 18, "so it would never end"),
        ("    expect:", "    options: {minPartitons: 2}\n    expect:", 3, "minPartitions"),
        ("    expect:", "    watermark: {column: att, delay: 1 hour}\n    expect:", 7, "`att`"),
    ],
)
def test_a_problem_names_the_line(
    orders: Workshop, old: str, new: str, line: int, message: str
) -> None:
    pipeline = orders.load(PIPELINE.replace(old, new, 1))
    with pytest.raises(PipelineError) as raised:
        validate_pipeline(orders.spark, pipeline)
    found = raised.value.problems
    wanted = message.replace("{name}", orders.name)
    assert any(each.line == line and wanted in each.message for each in found), found


def test_no_broker(orders: Workshop) -> None:
    text = PIPELINE.replace(
        "    format", "    options: {kafka.bootstrap.servers: '127.0.0.1:1'}\n    format"
    )
    with pytest.raises(PipelineError, match=r"no broker at 127\.0\.0\.1:1 answers"):
        validate_pipeline(orders.spark, orders.load(text))


def test_a_function_that_is_not_there(orders: Workshop) -> None:
    def problem(text: str) -> str:
        with pytest.raises(PipelineError) as raised:
            validate_pipeline(orders.spark, orders.load(text))
        return str(raised.value)

    start = PIPELINE.index("    sql: |")
    end = PIPELINE.index("sinks:")
    text = PIPELINE[:start] + "    python: steps_to_come:total\n    from: orders\n" + PIPELINE[end:]
    assert "steps_to_come cannot be imported" in problem(text)
    (orders.directory / "steps_to_come.py").write_text("def totals(orders): return 7\n")
    assert "there is no function total in steps_to_come" in problem(text)
    assert "returned int, not a DataFrame" in problem(
        text.replace("steps_to_come:total", "steps_to_come:totals")
    )
