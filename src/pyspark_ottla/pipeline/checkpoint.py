"""A query's progress, read from its checkpoint without Spark."""

import json
from pathlib import Path
from typing import NamedTuple

from ottla.client.wire.cluster import TopicPartition
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.stream_offsets import parse_stream_offset

_HEAD_LINES = 2  # The version, and Spark's batch metadata.


class Reached(NamedTuple):
    batch_id: int  # Of the last committed batch; -1 if there is none.
    next_offsets: dict[TopicPartition, int]


def read_checkpoint(pipeline: Pipeline, query: str) -> Reached | None:
    """None if no checkpoint can be read from here."""
    directory = Path(pipeline.checkpoints, query)
    if not directory.is_dir():
        return None
    committed = _numbers(directory / "commits")
    batch_id = max(committed, default=-1)
    return Reached(batch_id, _offsets(directory / "offsets" / str(batch_id)))


def read_planned(pipeline: Pipeline, query: str) -> Reached | None:
    """The last planned batch, committed or not; None if there is none."""
    offsets = Path(pipeline.checkpoints, query, "offsets")
    planned = _numbers(offsets)
    return Reached(max(planned), _offsets(offsets / str(max(planned)))) if planned else None


def read_first_start(pipeline: Pipeline, query: str) -> dict[TopicPartition, int] | None:
    """Where its first batch began; None if Spark has removed that batch's files."""
    found: dict[TopicPartition, int] = {}
    for line in _lines(Path(pipeline.checkpoints, query, "offsets", "0")):
        found |= parse_stream_offset(line).first_start() or {}
    return found or None


def _numbers(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    return [int(path.name) for path in directory.iterdir() if path.name.isdecimal()]


def _lines(path: Path) -> list[dict[str, object]]:
    if not path.is_file():
        return []
    lines = path.read_text().splitlines()[_HEAD_LINES:]
    return [json.loads(line) for line in lines if line.startswith("{")]


def _offsets(path: Path) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for line in _lines(path):
        found |= parse_stream_offset(line).offsets
    return found
