"""Pipeline tests as written in a file: input, and expected output.

    a_minute_is_written_when_it_is_over:
      given:
        orders:
          - {customer: anna, amount: 30, at: 2026-01-01T10:00:05Z}
      expect:
        totals: []

They are in `NAME.test.yaml` next to `NAME.yaml`, or under `tests:` in the pipeline itself. A case
with several `batches` runs the pipeline once for each, continuing from the one before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError

_BATCH_KEYS = ("given", "expect", "refused", "watermark", "fails")
_SUFFIX = ".test.yaml"

Rows = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class CaseBatch:
    given: Rows = field(default_factory=dict)  # By source.
    expect: Rows = field(default_factory=dict)  # By sink; others are not checked.
    refused: Rows = field(default_factory=dict)  # By source or step.
    watermark: Any = None  # Of every query after the batch.
    fails: str = ""  # The expected error text, if it must fail.


@dataclass(frozen=True)
class Case:
    name: str
    path: Path
    line: int
    batches: Sequence[CaseBatch]


def find_cases(pipeline: Pipeline) -> list[Case]:
    """Raises PipelineError for invalid tests, or if there are none."""
    found: list[Case] = []
    own = _read(pipeline.path, key="tests")
    beside = pipeline.path.with_name(pipeline.path.stem + _SUFFIX)
    others = _read(beside, key="") if beside.is_file() else {}
    for path, cases in ((pipeline.path, own), (beside, others)):
        found += [_case(pipeline, path, name, *each) for name, each in cases.items()]
    if not found:
        reason = f"it has no tests: write some in {beside.name}, or under tests: in the file"
        raise pipeline.error(reason)
    return found


def _read(path: Path, key: str) -> dict[str, tuple[int, Any]]:
    """Line and content by case name."""
    text = path.read_text()
    try:
        node = yaml.compose(text, yaml.SafeLoader)
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PipelineError.at(path, 0, f"this is not YAML: {error}") from None
    if key:
        values = {} if node is None else {name.value: value for name, value in node.value}
        node, document = values.get(key), (document or {}).get(key)
    if document is None:
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise PipelineError.at(path, 1, "tests are a mapping of names to cases")
    lines = {name.value: name.start_mark.line + 1 for name, _ in node.value}
    return {str(name): (lines[str(name)], content) for name, content in document.items()}


def _case(pipeline: Pipeline, path: Path, name: str, line: int, content: Any) -> Case:
    def wrong(message: str) -> PipelineError:
        return PipelineError.at(path, line, f"test {name}: {message}")

    if not isinstance(content, dict):
        raise wrong("give given and expect, or batches")
    batches = content.get("batches", [content])
    if not isinstance(batches, list) or ("batches" in content and len(content) > 1):
        raise wrong("batches is a list, and stands alone")
    for batch in batches:
        unknown = set(batch) - set(_BATCH_KEYS)
        if unknown:
            keys = ", ".join(_BATCH_KEYS)
            raise wrong(f"there is no key {', '.join(sorted(unknown))}; there are {keys}")
        _validate_names(batch, "given", pipeline.sources, wrong)
        _validate_names(batch, "expect", pipeline.sinks, wrong)
        quarantining = {dataset.name for dataset in pipeline.datasets if dataset.quarantines}
        _validate_names(batch, "refused", quarantining, wrong)
    return Case(name, path, line, [CaseBatch(**batch) for batch in batches])


def _validate_names(batch: dict[str, Any], key: str, known: Any, wrong: Any) -> None:
    for name, rows in (batch.get(key) or {}).items():
        if name not in known:
            raise wrong(f"{key}: there is no {name}; there are {', '.join(known) or 'none'}")
        if not isinstance(rows, list):
            raise wrong(f"{key}: {name} is a list of rows")
