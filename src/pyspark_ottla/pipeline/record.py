"""What is remembered of a pipeline next to its checkpoints, in `ottla.json`.

The shape of each query at its last run, how often it began anew, where sources begin for queries
without a checkpoint, and which offsets each query has read. It is a file if this process can write
one, and otherwise, as on S3 or behind Spark Connect, a text written by Spark.

A query begins anew the moment the record says so. Its checkpoint is renamed after that, and if the
process dies in between, the next reader of the record does it.
"""

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.paths import has_scheme
from pyspark_ottla.pipeline.shape import Shape
from pyspark_ottla.pipeline.stretches import Stretch
from pyspark_ottla.spark_api import is_connect

NAME = "ottla.json"


@dataclass(frozen=True)
class Written:
    """What a query had written when it began anew."""

    query: str
    target: str
    stretches: list[Stretch]


@dataclass
class Record:
    shapes: dict[str, Shape] = field(default_factory=dict)  # By query.
    generations: dict[str, int] = field(default_factory=dict)  # How often a query began anew.
    starts: dict[str, str] = field(default_factory=dict)  # JSON offsets, by source.
    # JSON offsets that the query began with, by query and source.
    begins: dict[str, dict[str, str]] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)
    # Type by source and field that producers have added.
    added: dict[str, dict[str, str]] = field(default_factory=dict)
    sink_ids: dict[str, str] = field(default_factory=dict)  # For renamed sinks.
    # By query: new names of checkpoints still to be set aside.
    set_aside: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps({"version": 1, **asdict(self)}, indent=1)

    @staticmethod
    def from_json(text: str) -> "Record":
        found: dict[str, Any] = json.loads(text)
        shapes = {name: Shape(**shape) for name, shape in found["shapes"].items()}
        written = [
            Written(
                each["query"], each["target"], [Stretch(*stretch) for stretch in each["stretches"]]
            )
            for each in found.get("written", [])
        ]
        known = {each.name: found[each.name] for each in fields(Record) if each.name in found}
        return Record(**known | {"shapes": shapes, "written": written})


class RecordFile:
    """`spark` is needed for checkpoints outside this process's reach."""

    def __init__(self, pipeline: Pipeline, spark: Any = None) -> None:
        self._pipeline = pipeline
        self._directory = pipeline.checkpoints
        self._spark = spark if is_connect(spark) or has_scheme(self._directory) else None

    @property
    def is_local(self) -> bool:
        return self._spark is None

    def read(self) -> Record:
        """Raises PipelineError for an invalid record."""
        text = self._read(NAME)
        try:
            record = Record() if text is None else Record.from_json(text)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f"{self._directory}/{NAME} is not what a run has written ({error!r})"
            hint = "without it changes since the last run are not seen"
            raise self._pipeline.error(f"{reason}; remove it to go on, but {hint}") from None
        return self._set_aside(record) if record.set_aside else record

    def has_checkpoint(self, query: str) -> bool:
        return self._read(f"{query}/metadata") is not None

    def has_begun(self, query: str) -> bool:
        """Whether a first batch was planned; until then it may still begin elsewhere."""
        if self._spark is not None:
            return self.has_checkpoint(query)
        offsets = Path(self._directory, query, "offsets")
        return offsets.is_dir() and any(path.name.isdecimal() for path in offsets.iterdir())

    def write(self, record: Record) -> None:
        if self._spark is not None:
            frame = self._spark.createDataFrame([(record.to_json(),)], "value string")
            frame.coalesce(1).write.mode("overwrite").option("lineSep", "\n").text(
                f"{self._directory}/{NAME}"
            )
            return
        write_file(Path(self._directory, NAME), record.to_json())

    def _set_aside(self, record: Record) -> Record:
        for name, aside in record.set_aside.items():
            checkpoint, target = (Path(self._directory, each) for each in (name, aside))
            if checkpoint.exists() and not target.exists():
                checkpoint.rename(target)
        record = replace(record, set_aside={})
        self.write(record)
        return record

    def _read(self, name: str) -> str | None:
        path = f"{self._directory}/{name}"
        if self._spark is None:
            return Path(path).read_text() if Path(path).is_file() else None
        try:
            rows = self._spark.read.text(path, wholetext=True).collect()
        except PySparkException as error:
            if "PATH_NOT_FOUND" in str(error):
                return None
            raise
        return "".join(row[0] for row in rows)


def write_file(path: Path, text: str) -> None:
    """Atomic, even in a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)
