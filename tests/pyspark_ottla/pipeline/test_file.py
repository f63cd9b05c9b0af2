from pathlib import Path

import pytest

from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.model import Otherwise, Pipeline, SinkKind
from pyspark_ottla.pipeline.problems import PipelineError

WHOLE = """\
name: orders-per-minute
bootstrap-servers: broker:9092
checkpoints: state
variables:
  topic: orders
  table:
spark:
  spark.sql.shuffle.partitions: 4
sources:
  orders:
    topic: ${topic}
    format: json
    schema: |
      customer string,
      amount double
    start: latest
    max-records-per-batch: 500
    headers: true
    bad-values: quarantine
    watermark: {column: at, delay: 10 minutes}
    expect:
      positive: {check: amount > 0, otherwise: drop}
steps:
  cleaned: {python: "steps:clean", from: orders, with: {limit: 3}}
  totals:
    sql: |
      select customer
      from cleaned
sinks:
  out: {from: totals, topic: totals, key: customer, partitions: 3, mode: update}
  files: {from: cleaned, parquet: "${table}", partition-by: [customer], every: 10 seconds}
  far: {from: cleaned, delta: "s3a://bucket/table"}
"""


def load(directory: Path, text: str, **given: object) -> Pipeline:
    path = directory / "pipeline.yaml"
    path.write_text(text)
    return load_pipeline(path, **given)  # type: ignore[arg-type]


def problems_of(directory: Path, text: str, **given: object) -> list[tuple[int, str]]:
    with pytest.raises(PipelineError) as raised:
        load(directory, text, **given)
    return [(problem.line, problem.message) for problem in raised.value.problems]


def test_paths_are_meant_from_the_directory_of_the_file(tmp_path: Path) -> None:
    text = """\
name: paths
sources: {all: {topic: all}}
sinks:
  files: {from: all, parquet: files}
  delta: {from: all, delta: lake/delta}
  iceberg: {from: all, iceberg: lake/iceberg}
  catalog: {from: all, iceberg: lake.sales.orders}
"""
    targets = {name: sink.target for name, sink in load(tmp_path, text).sinks.items()}
    assert targets == {
        "files": str(tmp_path / "files"),
        "delta": str(tmp_path / "lake" / "delta"),
        "iceberg": str(tmp_path / "lake" / "iceberg"),
        "catalog": "lake.sales.orders",
    }


def test_everything_that_a_file_can_say(tmp_path: Path) -> None:
    pipeline = load(tmp_path, WHOLE, variables={"table": "files"})
    assert pipeline.name == "orders-per-minute"
    assert pipeline.bootstrap_servers == "broker:9092"
    assert pipeline.checkpoints == f"{tmp_path}/state/orders-per-minute"
    assert pipeline.dead_letter_topic == "orders-per-minute.dead-letter"
    assert pipeline.spark_settings == {"spark.sql.shuffle.partitions": "4"}
    orders = pipeline.sources["orders"]
    assert orders.topics == ("orders",)
    assert orders.schema == "customer string,\namount double\n"
    assert orders.schema.line == 14
    assert (orders.start, orders.records_per_batch_max, orders.has_headers) == ("latest", 500, True)
    assert orders.bad_values is Otherwise.QUARANTINE
    assert orders.watermark is not None
    assert (orders.watermark.column, orders.watermark.delay) == ("at", "10 minutes")
    (positive,) = orders.expectations
    assert (positive.name, positive.check, positive.otherwise) == (
        "positive",
        "amount > 0",
        Otherwise.DROP,
    )
    cleaned, totals = pipeline.steps.values()
    assert (cleaned.function, cleaned.inputs, cleaned.arguments) == (
        "steps:clean",
        ("orders",),
        {"limit": "3"},
    )
    assert totals.sql.line == 27
    out, files, far = pipeline.sinks.values()
    assert (out.kind, out.target, out.key, out.partitions) == (
        SinkKind.TOPIC,
        "totals",
        ("customer",),
        3,
    )
    assert (files.target, files.partition_by, files.trigger) == (
        str(tmp_path / "files"),
        ("customer",),
        "10 seconds",
    )
    assert far.target == "s3a://bucket/table"


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    given = {"variables": {"table": "t"}, "bootstrap_servers": "other:1", "checkpoints": "/c/"}
    pipeline = load(tmp_path, WHOLE, **given)
    assert pipeline.bootstrap_servers == "other:1"
    assert pipeline.checkpoints == "/c/orders-per-minute"
    relative = load(tmp_path, WHOLE, **(given | {"checkpoints": "c"}))
    assert relative.checkpoints == f"{Path.cwd()}/c/orders-per-minute"


SMALL = """\
name: small
sources:
  lines: {topic: lines}
sinks:
  out: {from: lines, topic: out, format: record}
"""


def test_a_small_one_has_defaults(tmp_path: Path) -> None:
    pipeline = load(tmp_path, SMALL)
    assert pipeline.bootstrap_servers == "localhost:9092"
    assert pipeline.checkpoints == f"{tmp_path}/checkpoints/small"
    assert pipeline.sources["lines"].start == "earliest"
    assert pipeline.sinks["out"].mode == "append"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("name: small", "nam: small", 1, "there is no key nam; did you mean name?"),
        ("name: small", "name: a b", 1, "name is 'a b'; it has 1 to 50 letters"),
        ("topic: lines", "topik: lines", 3, "there is no key topik; did you mean topic?"),
        ("topic: lines", "topic: lines, format: xml", 3, "format is 'xml'; it can be binary"),
        ("topic: lines", "topic: lines, format: json", 3, "format json needs schema"),
        ("topic: lines", "topic: lines, format: json, schema: a itn", 3, "schema: field a: there"),
        ("topic: lines", "topic: lines, schema: a int", 3, "schema has no meaning with format"),
        ("topic: lines", "topic: lines, pattern: x.*", 3, "give topic"),
        ("topic: lines", "topic: {a: 1}", 3, "topic must be a text"),
        ("topic: lines", "topic: lines, headers: 7", 3, "headers is '7'; it can be true, false"),
        ("topic: lines", "topic: lines, max-records-per-batch: -1", 3, "whole number from 1 on"),
        ("topic: lines", "topic: '${x}'", 3, "there is no variable x; add it under variables"),
        ("topic: lines", "topic: a, topic: b", 3, "source lines: topic is there twice"),
        ("{topic: lines}", "", 3, "sources: lines is empty"),
        ("{topic: lines}", "7", 3, "sources: lines must be a mapping, as {topic: "),
        ("topic: lines", "topic: lines, watermark: at", 3, "as {column: at, delay: 5 minutes}"),
        ("topic: lines", "topic: lines, expect: {a: b > 0}", 3, "a must be a mapping, as {check"),
        ("  lines:", "  li-nes:", 3, "'li-nes' is the name of a table in SQL"),
        ("from: lines", "from: line", 5, "there is no source or step line before it"),
        ("topic: out", "topik: out", 5, "give one of topic, delta, iceberg, parquet, console"),
        ("topic: out", "console: false", 5, "console is 'false'; it can be true"),
        ("topic: out", "parquet: out", 5, "format is for sinks with topic"),
        ("topic: out", "topic: out, every: soon", 5, "every is 'soon'; it is a time, as 10 sec"),
        ("topic: out", "topic: out, mode: add", 5, "mode is 'add'; it can be append, update"),
        ("topic: out, format: record", "delta: t, mode: update", 5, "give their key"),
        ("topic: out, format: record", "delta: t, deleted: gone", 5, "give key"),
        ("topic: out", "topic: out, key: [a, b]", 5, "the key of a record is one expression"),
        ("topic: out", "topic: 'o u t'", 5, "'o u t' is not a name of a topic"),
        ("sinks:", "sinks: [", 6, "this is not YAML"),
        ("sources:", "x: 1\nsources:", 2, "there is no key x; there are name,"),
    ],
)
def test_a_problem_names_the_line_and_what_to_do(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    found = problems_of(tmp_path, SMALL.replace(old, new, 1))
    assert any(each[0] == line and message in each[1] for each in found), found


def test_all_problems_are_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as raised:
        load(tmp_path, "name: a b\nsources:\n  one: {topic: x, formt: json}\n")
    path = tmp_path / "pipeline.yaml"
    assert str(raised.value).splitlines() == [
        f"{path}:1: the pipeline: name is 'a b'; it has 1 to 50 letters, digits, '_' and '-'",
        f"{path}:1: the pipeline: sinks is missing: where the rows go",
        f"{path}:3: source one: there is no key formt; did you mean format?",
    ]


STEP = "steps:\n  one: {sql: select 1}\nsinks:"


@pytest.mark.parametrize(
    ("new", "line", "message"),
    [
        (STEP.replace("sql: select 1", "from: lines"), 5, "give sql, or python"),
        (STEP.replace("sql: select 1", "python: f, from: lines"), 5, "it is module:function"),
        (STEP.replace("sql: select 1", "python: 'm:f'"), 5, "from is missing"),
        (STEP.replace("sql: select 1", "sql: x, from: lines"), 5, "from and with are for python"),
        (STEP.replace("one:", "lines:"), 5, "a source has that name already"),
        (STEP.replace("1}", "1, expect: {a: {check: b}}}"), 5, "otherwise is missing"),
        (STEP.replace("1}", "1, expect: {a: {otherwise: drop}}}"), 5, "check is missing"),
        (STEP.replace("1}", "1, watermark: {delay: 1 hour}}"), 5, "column is missing"),
    ],
)
def test_problems_of_steps(tmp_path: Path, new: str, line: int, message: str) -> None:
    found = problems_of(tmp_path, SMALL.replace("sinks:", new, 1))
    assert any(each[0] == line and message in each[1] for each in found), found


def test_variables_must_be_known_and_have_values(tmp_path: Path) -> None:
    text = "variables: {topic: }\n" + SMALL.replace("topic: lines", "topic: '${topic}'")
    assert problems_of(tmp_path, text) == [
        (1, "variables: topic has no value; give --set topic=..."),
    ]
    found = problems_of(tmp_path, text, variables={"topic": "t", "tipoc": "t"})
    assert found == [(1, "the pipeline: there is no variable tipoc to set; there are: topic")]


@pytest.mark.parametrize("text", ["", "- a", "just text", "a: b: c"])
def test_what_is_no_pipeline_at_all(tmp_path: Path, text: str) -> None:
    assert problems_of(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="cannot be read: No such file"):
        load_pipeline(tmp_path / "none.yaml")


def test_a_schema_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "line.avsc").write_text('"string"')
    good = SMALL.replace("topic: lines", "topic: lines, format: avro, schema-file: line.avsc")
    assert load(tmp_path, good).sources["lines"].schema == '"string"'
    found = problems_of(tmp_path, good.replace("line.avsc", "none.avsc"))
    assert found[0][0] == 3
    assert "none.avsc cannot be read" in found[0][1]
