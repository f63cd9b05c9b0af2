"""Progress of a pipeline's queries, from Spark's report on each batch."""

import ast
import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark_ottla.pipeline.expectations import BAD_VALUE, BAD_VALUE_REASON, OBSERVED
from pyspark_ottla.pipeline.writers import ROWS_OUT
from pyspark_ottla.stream_offsets import parse_stream_offset


@dataclass
class QueryProgress:
    name: str
    target: str
    is_running: bool = True
    error: str = ""
    batches: int = 0
    batch_id: int = -1  # Of the last batch.
    rows_in: int = 0  # Since the run began, like the next two.
    rows_out: int = 0
    refused: dict[str, int] = field(default_factory=dict)  # Rows, by `dataset.expectation`.
    rows_in_per_s: float = 0.0  # In the last batch.
    rows_out_per_s: float = 0.0
    batch_ms: int = 0
    batches_ms: int = 0  # Of all since the run began.
    batch_at: float = 0.0  # Start of the last batch, as Unix time in seconds.
    restarts: int = 0
    lag: int = 0  # Records in the topics, not yet read.
    state_rows: int = 0
    state_bytes: int = 0

    @property
    def batch_seconds(self) -> float:
        return self.batch_ms / 1000

    @property
    def batches_seconds(self) -> float:
        return self.batches_ms / 1000

    def count(self, report: Mapping[str, Any]) -> None:
        """Take over the figures of a batch as Spark reports them."""
        # Of rows, Spark Connect reports nothing else.
        rows = sum(source["numInputRows"] for source in report["sources"])
        observed = _observed(report)
        out = observed.get(ROWS_OUT, {}).get("rows", 0)
        duration_ms = report["durationMs"].get("triggerExecution", 0)
        self.batches += report["batchId"] > self.batch_id
        self.batch_id = report["batchId"]
        self.rows_in += rows
        self.rows_out += out
        self.rows_in_per_s = _per_second(rows, duration_ms)
        self.rows_out_per_s = _per_second(out, duration_ms)
        self.batch_ms = duration_ms
        self.batches_ms += duration_ms
        self.batch_at = dt.datetime.fromisoformat(report["timestamp"]).timestamp()
        self.lag = sum(_lag(source) for source in report["sources"])
        self.state_rows = sum(each["numRowsTotal"] for each in report["stateOperators"])
        self.state_bytes = sum(each["memoryUsedBytes"] for each in report["stateOperators"])
        for dataset, counts in observed.items():
            if dataset.startswith(OBSERVED):
                for name, count in counts.items():
                    reason = BAD_VALUE_REASON if name == BAD_VALUE else name
                    key = f"{dataset.removeprefix(OBSERVED)}.{reason}"
                    self.refused[key] = self.refused.get(key, 0) + (count or 0)


class Progress:
    def __init__(self, pipeline: str) -> None:
        self.pipeline = pipeline
        self.queries: dict[str, QueryProgress] = {}
        self._seen: dict[str, str] = {}  # Time of the last report counted.

    def add(self, name: str, target: str) -> None:
        self.queries[name] = QueryProgress(name, target)

    def take(self, name: str, report: Mapping[str, Any]) -> None:
        """Count a report of Spark's; a repeated one changes nothing."""
        if report["timestamp"] <= self._seen.get(name, ""):
            return
        self._seen[name] = report["timestamp"]
        self.queries[name].count(report)

    def fail(self, name: str, error: str) -> None:
        self.queries[name].error = error
        self.queries[name].is_running = False

    def end(self, name: str) -> None:
        self.queries[name].is_running = False


def _observed(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        name: _as_mapping(row.asDict() if hasattr(row, "asDict") else dict(row))
        for name, row in (report.get("observedMetrics") or {}).items()
    }


def _as_mapping(row: dict[str, Any]) -> dict[str, Any]:
    """Spark Connect passes names and values separately."""
    if set(row) != {"values", "schema"}:
        return row
    names = [column["name"] for column in row["schema"]["fields"]]
    return dict(zip(names, row["values"], strict=True))


def _per_second(rows: int, duration_ms: int) -> float:
    return 1000 * rows / duration_ms if duration_ms else 0.0


def _lag(source: Mapping[str, Any]) -> int:
    latest, end = map(reported_offset, (source.get("latestOffset"), source.get("endOffset")))
    newest, read = parse_stream_offset(latest).offsets, parse_stream_offset(end).offsets
    return sum(max(0, offset - read.get(key, 0)) for key, offset in newest.items())


def reported_offset(offset: Any) -> dict[str, Any]:
    """Empty if unknown, as in the first report after a restart."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:  # Before Spark 4.2 it is in Python syntax.
            offset = ast.literal_eval(offset)
    return offset if isinstance(offset, dict) else {}
