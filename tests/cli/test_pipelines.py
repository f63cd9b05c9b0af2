import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Ottla

from ottla.cli.pipelines.options import PipelineOptions
from ottla.cli.pipelines.preview import print_preview
from ottla.cli.pipelines.run import print_end

pytest.importorskip("pyspark")

from pyspark_ottla.pipeline.preview import Preview
from pyspark_ottla.pipeline.progress import Progress


def test_problems_of_a_file_are_said_one_by_one(ottla: Ottla, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: bad\nsources:\n  one: {topic: x, formt: json}\n")
    for command in ("validate", "run"):
        exit_code, output, errors = ottla("pipeline", command, file)
        assert (exit_code, output) == (1, "")
        assert errors.splitlines() == [
            f"ottla: {file}:1: the pipeline: sinks is missing: where the rows go",
            f"ottla: {file}:3: source one: there is no key formt; did you mean format?",
        ]


def test_topics_are_looked_for_before_spark_starts(
    ottla: Ottla, bootstrap: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines.yaml"
    file.write_text(
        "name: lines\nsources:\n  lines: {topic: no-such-topic}\n"
        "sinks:\n  out: {from: lines, topic: out, format: record}\n"
    )
    exit_code, _, errors = ottla("pipeline", "run", file, "--once", bootstrap=bootstrap)
    assert exit_code == 1
    assert errors == (
        f"ottla: {file}:3: source lines: there is no topic no-such-topic;"
        " `ottla topics create no-such-topic` makes it\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "x"), "--set"),
        (("--remote", "sc://h", "--master", "spark://h:7077"), "exclude each other"),
        (("--metrics-port", "70000"), "is not from 0 to 65535"),
    ],
)
def test_a_command_line_that_is_wrong(
    ottla: Ottla, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    file = tmp_path / "lines.yaml"
    file.write_text("name: lines\n")
    exit_code, _, errors = ottla("pipeline", "run", file, *arguments)
    assert exit_code == 2
    assert message in errors


def test_without_spark_it_says_what_to_install(
    ottla: Ottla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("pyspark_ottla")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    exit_code, _, errors = ottla("pipeline", "validate", tmp_path / "any.yaml")
    assert exit_code == 1
    assert errors == (
        "ottla: pipelines run on Spark, which is not installed: pip install 'ottla[spark]'\n"
    )


def test_what_was_done_in_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("shop")
    progress.add("totals", "topic per-minute")
    progress.queries["totals"].rows_in = 4
    progress.queries["totals"].rows_out = 1
    print_end(progress, as_json=False)
    assert capsys.readouterr().out == "totals: 4 rows in, 1 row out to topic per-minute\n"


def test_a_stop_before_the_first_batch_is_not_an_empty_topic(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress("shop")
    progress.add("totals", "topic per-minute")
    print_end(progress, as_json=False, stopped=True)
    expected = "totals: stopped before its first batch finished; the next run starts it again\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("options", "beginning"),
    [
        (PipelineOptions(), "starting Spark, which takes some seconds; its log is in x.log"),
        (
            PipelineOptions(master="spark://h:7077"),
            "starting Spark with spark://h:7077, which takes",
        ),
        (PipelineOptions(remote="sc://h"), "connecting to Spark at sc://h"),
    ],
)
def test_what_a_user_waits_for(options: PipelineOptions, beginning: str) -> None:
    assert options.describe_start(Path("x.log")).startswith(beginning)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("init", "new.yaml"), 2, "--topic is missing"),
        (("init", "new.yaml", "--topic", "a", "--into", "hive:x"), 2, "--into hive:x is not"),
        (("reset", "lines.yaml"), 2, "write again to: out; give --yes to do it"),
        (("test", "lines.yaml"), 1, "it has no tests: write some in lines.test.yaml"),
        (("preview", "lines.yaml", "--rows", "0"), 2, "--rows and --sample"),
    ],
)
def test_what_needs_no_spark_is_said_without_it(
    ottla: Ottla,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    exit_code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.yaml").write_text(LINES)
    assert ottla("pipeline", *arguments)[0] == exit_code
    assert message in ottla("pipeline", *arguments).errors


LINES = (
    "name: lines\nsources:\n  lines: {topic: lines}\n"
    "sinks:\n  out: {from: lines, topic: out, format: record}\n"
)


def test_a_drawing_and_a_status(ottla: Ottla, tmp_path: Path) -> None:
    file = tmp_path / "lines.yaml"
    file.write_text(LINES)
    assert ottla("pipeline", "graph", file).output.splitlines()[0] == "lines  (topic lines)"
    assert ottla("pipeline", "graph", file, "--svg", tmp_path / "a.svg").exit_code == 0
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    (sink,) = ottla("pipeline", "status", file, "--json").json["sinks"]
    assert (sink["sink"], sink["process"], sink["batch"]) == ("out", None, None)


def test_a_preview_names_columns_as_steps_must(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"customer": "anna", "_key": None}
    print_preview(Preview("orders", "source", list(row), [row], 1, {"bad value": 2}))
    assert capsys.readouterr().out.splitlines() == [
        "source orders: 1 row",
        "customer  _key",
        "anna      -",
        "refused for bad value: 2 rows",
        "",
    ]
