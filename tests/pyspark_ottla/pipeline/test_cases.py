import datetime as dt
import decimal
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from pyspark_ottla.pipeline.case_rows import find_differences
from pyspark_ottla.pipeline.case_run import Outcome
from pyspark_ottla.pipeline.cases import Case, find_cases
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.junit import as_junit
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError

PIPELINE = """\
name: lines
sources:
  lines: {topic: lines}
sinks:
  out: {from: lines, topic: out, format: record}
"""
TEN = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)


def pipeline(directory: Path, inside: str = "", beside: str = "") -> Pipeline:
    path = directory / "lines.yaml"
    path.write_text(PIPELINE + inside)
    if beside:
        (directory / "lines.test.yaml").write_text(beside)
    return load_pipeline(path)


def test_cases_in_the_file_and_beside_it(tmp_path: Path) -> None:
    inside = "tests:\n  one:\n    given: {lines: [a]}\n    expect: {out: [{value: a}]}\n"
    beside = "\ntwo:\n  batches:\n  - given: {lines: [a]}\n  - {fails: no such}\n"
    inner, outer = find_cases(pipeline(tmp_path, inside, beside))
    assert (inner.name, inner.path.name, inner.line) == ("one", "lines.yaml", 7)
    assert inner.batches[0].expect == {"out": [{"value": "a"}]}
    assert (outer.name, outer.path.name, outer.line) == ("two", "lines.test.yaml", 2)
    assert [batch.fails for batch in outer.batches] == ["", "no such"]


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        ("", "it has no tests: write some in lines.test.yaml"),
        ("- a", "tests are a mapping of names to cases"),
        ("a: [", "this is not YAML"),
        ("a: 7", "test a: give given and expect, or batches"),
        ("a: {gven: {}}", "test a: there is no key gven; there are given, expect"),
        ("a: {given: {line: []}}", "given: there is no line; there are lines"),
        ("a: {expect: {outt: []}}", "expect: there is no outt; there are out"),
        ("a: {refused: {lines: []}}", "refused: there is no lines; there are none"),
        ("a: {given: {lines: 7}}", "given: lines is a list of rows"),
        ("a: {batches: [], given: {}}", "batches is a list, and stands alone"),
    ],
)
def test_what_is_no_test(tmp_path: Path, beside: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        find_cases(pipeline(tmp_path, beside=beside))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}]),
        ([{"at": TEN}], [{"at": "2026-01-01T10:00:00Z"}]),
        ([{"at": TEN}], [{"at": "2026-01-01T11:00:00+01:00"}]),
        ([{"day": TEN.date()}], [{"day": "2026-01-01"}]),
        ([{"day": "2026-01-01"}], [{"day": TEN.date()}]),
        ([{"a": 0.1 + 0.2}], [{"a": 0.3}]),
        ([{"a": decimal.Decimal("1.50")}], [{"a": 1.5}]),
        ([{"a": b"text"}], [{"a": "text"}]),
        ([{"a": {"b": [1.0, None]}}], [{"a": {"b": [1, None]}}]),
        ([{"a": 1, "_offset": 7}], [{"a": 1}]),
    ],
)
def test_rows_that_are_the_same(found: list[Any], expected: list[Any]) -> None:
    assert find_differences(found, expected) == []


@pytest.mark.parametrize(
    ("found", "expected", "lines"),
    [
        ([], [{"a": 1}], ['- missing     {"a": 1}']),
        ([{"a": 1, "_offset": 7}], [], ['+ unexpected  {"a": 1}']),
        ([{"a": 1}, {"a": 1}], [{"a": 1}], ['+ unexpected  {"a": 1}']),
        (
            [{"a": 1, "b": 2}],
            [{"a": 1, "b": 3}],
            ['~ differs     {"a": 1, "b": 3}: b is 2 and not 3'],
        ),
        (
            [{"a": 1, "b": 2}],
            [{"a": 1}],
            ['~ differs     {"a": 1}: b is 2 and not null'],
        ),
        (
            [{"a": 1, "_key": "x"}],
            [{"a": 1, "_key": "y"}],
            ['~ differs     {"a": 1, "_key": "y"}: _key is "x" and not "y"'],
        ),
        ([{"a": True}], [{"a": 1}], ['- missing     {"a": 1}', '+ unexpected  {"a": true}']),
    ],
)
def test_how_rows_differ(found: list[Any], expected: list[Any], lines: list[str]) -> None:
    assert find_differences(found, expected) == lines


def test_junit() -> None:
    case = Case("it <works>", Path("lines.test.yaml"), 3, [])
    root = ET.fromstring(as_junit([("lines", [Outcome(case, ["out: - missing"], 1.5)])]))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("time")) == ("1", "1", "1.500")
    (written,) = suite
    assert (written.get("name"), written.get("line")) == ("it <works>", "3")
    assert written[0].text == "out: - missing"
