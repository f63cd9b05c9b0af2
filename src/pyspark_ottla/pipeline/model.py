"""What a pipeline file says, checked and typed."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark_ottla.pipeline.document import Text


class Otherwise(enum.StrEnum):
    """What becomes of a row that is not as expected."""

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
    check: Text  # A condition in SQL; a row is good when it is true, not when it is null.
    otherwise: Otherwise


@dataclass(frozen=True)
class Source:
    name: str
    line: int
    topics: tuple[Text, ...]
    pattern: Text
    format: str
    schema: Text
    start: str
    records_per_batch_max: int | None
    has_headers: bool
    bad_values: Otherwise
    options: Mapping[str, str]
    watermark: Watermark | None = None
    expectations: tuple[Expectation, ...] = ()
    takes_added: bool = False  # Whether fields that the schema does not know become columns.

    @property
    def quarantines(self) -> bool:
        return self.bad_values is Otherwise.QUARANTINE or any_quarantined(self.expectations)


@dataclass(frozen=True)
class Step:
    """Either `sql`, or a function with the names of the frames that it gets."""

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


@dataclass(frozen=True)
class Sink:
    name: str
    line: int
    kind: SinkKind
    target: Text  # The topic, or the path or name of the table.
    input: Text
    mode: str
    trigger: str  # How often a batch starts; empty: one after the other.
    key: tuple[Text, ...]  # Of a topic one expression in SQL, of a table columns.
    order_by: str  # Of the rows of one key in a batch, the last by this column counts.
    deleted: str  # The column that is true for rows that remove one.
    format: str
    partition_by: tuple[Text, ...]
    partitions: int | None  # Of the topic if it is to be made.
    sink_id: str
    options: Mapping[str, str]
    publishes_schema: bool = False  # Beside the topic.


@dataclass(frozen=True)
class Pipeline:
    path: Path
    name: str
    bootstrap_servers: str
    checkpoints: str  # A directory of this pipeline's own.
    dead_letter_topic: Text
    spark_settings: Mapping[str, str]
    sources: Mapping[str, Source] = field(default_factory=dict)
    steps: Mapping[str, Step] = field(default_factory=dict)
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)  # By query: how often reset.
    sink_ids: Mapping[str, str] = field(default_factory=dict)  # Of sinks that were renamed.
    lineage: str = ""  # Where events of OpenLineage go; empty: there are none.

    @property
    def datasets(self) -> list[Source | Step]:
        """What has rows, each after those that it can read."""
        return [*self.sources.values(), *self.steps.values()]


def any_quarantined(expectations: tuple[Expectation, ...]) -> bool:
    return any(each.otherwise is Otherwise.QUARANTINE for each in expectations)
