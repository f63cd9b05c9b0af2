"""The contents of a pipeline file, validated and typed."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark_ottla.pipeline.document import Text
from pyspark_ottla.pipeline.problems import PipelineError


class Otherwise(enum.StrEnum):
    """What happens to a row that fails an expectation."""

    DROP = "drop"
    QUARANTINE = "quarantine"
    FAIL = "fail"


@dataclass(frozen=True)
class Watermark:
    column: str
    delay: str
    line: int


@dataclass(frozen=True)
class Expectation:
    name: str
    check: Text  # An SQL condition; a row is good when it is true, not when it is null.
    otherwise: Otherwise


@dataclass(frozen=True)
class Source:
    name: str
    line: int
    topics: tuple[Text, ...]
    pattern: Text = field(default_factory=Text)
    format: str = "binary"
    schema: Text = field(default_factory=Text)
    start: str = "earliest"
    records_per_batch_max: int | None = None
    has_headers: bool = False
    bad_values: Otherwise = Otherwise.FAIL
    options: Mapping[str, str] = field(default_factory=dict)
    watermark: Watermark | None = None
    expectations: tuple[Expectation, ...] = ()
    takes_added: bool = False  # Whether fields unknown to the schema become columns.

    @property
    def quarantines(self) -> bool:
        return self.bad_values is Otherwise.QUARANTINE or any_quarantined(self.expectations)


@dataclass(frozen=True)
class Step:
    """Either `sql`, or a function with the names of its input frames."""

    name: str
    line: int
    sql: Text
    function: Text
    inputs: tuple[Text, ...]
    arguments: Mapping[str, str]
    watermark: Watermark | None = None
    expectations: tuple[Expectation, ...] = ()

    @property
    def quarantines(self) -> bool:
        return any_quarantined(self.expectations)


class SinkKind(enum.StrEnum):
    TOPIC = "topic"
    DELTA = "delta"
    ICEBERG = "iceberg"
    PARQUET = "parquet"
    CONSOLE = "console"


TABLES = (SinkKind.DELTA, SinkKind.ICEBERG)


@dataclass(frozen=True)
class Sink:
    name: str
    line: int
    kind: SinkKind
    target: Text  # The topic, or the table's path or name.
    input: Text
    mode: str
    trigger: str  # How often a batch starts; empty: back to back.
    key: tuple[Text, ...]  # For a topic one SQL expression, for a table columns.
    order_by: str  # Among rows with the same key in a batch, the last by this column counts.
    deleted: str  # The column that is true for rows that delete one.
    format: str
    partition_by: tuple[Text, ...]
    partitions: int | None  # Of the topic, if it must be created.
    sink_id: str
    options: Mapping[str, str]
    publishes_schema: bool = False  # Next to the topic.


@dataclass(frozen=True)
class Pipeline:
    path: Path
    name: str
    bootstrap_servers: str
    checkpoints: str  # This pipeline's own directory.
    dead_letter_topic: Text
    spark_settings: Mapping[str, str]
    sources: Mapping[str, Source] = field(default_factory=dict)
    steps: Mapping[str, Step] = field(default_factory=dict)
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)  # Number of resets by query.
    sink_ids: Mapping[str, str] = field(default_factory=dict)  # For renamed sinks.
    lineage: str = ""  # Where OpenLineage events go; empty: nowhere.

    @property
    def datasets(self) -> list[Source | Step]:
        """Sources and steps, each after its possible inputs."""
        return [*self.sources.values(), *self.steps.values()]

    def validate_sinks(self, names: Iterable[str]) -> None:
        """Raises PipelineError if one is not there."""
        for name in names:
            if name not in self.sinks:
                raise self.error(f"there is no sink {name}; there are {', '.join(self.sinks)}")

    def error(self, message: str, line: int = 0) -> PipelineError:
        """An error to raise; `line` says where in the file the problem is, if anywhere."""
        return PipelineError.at(self.path, line, message)


def any_quarantined(expectations: tuple[Expectation, ...]) -> bool:
    return any(each.otherwise is Otherwise.QUARANTINE for each in expectations)
