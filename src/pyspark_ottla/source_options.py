"""The options of a read, named as in Spark's Kafka source, checked and typed."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation
from pyspark_ottla.cluster_options import NAMES as CLUSTER_NAMES
from pyspark_ottla.cluster_options import ClusterOptions, parse_cluster_options
from pyspark_ottla.options import OptionError, OptionValues
from pyspark_ottla.positions import AtEnd, AtOffsets, AtTimes, Position
from pyspark_ottla.subscription import NAMES as SUBSCRIPTION_NAMES
from pyspark_ottla.subscription import Subscription, parse_subscription

STARTS = ("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp")
ENDS = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
STRATEGY = "startingOffsetsByTimestampStrategy"
STREAM_ONLY = ("maxOffsetsPerTrigger", "commitGroup")
NAMES = (
    *CLUSTER_NAMES,
    *SUBSCRIPTION_NAMES,
    *STARTS,
    *ENDS,
    STRATEGY,
    *STREAM_ONLY,
    "minPartitions",
    "includeHeaders",
    "includeRawValue",
    "includeValueError",
    "failOnDataLoss",
    "kafka.isolation.level",
    "kafka.default.api.timeout.ms",
    "kafka.max.partition.fetch.bytes",
    "valueFormat",
    "valueSchema",
    "valueMode",
)

_FETCH_BYTES = 4 * 1024 * 1024  # More is no faster; a task takes about eight times this.


class Use(enum.Enum):
    BATCH = "batch query"
    STREAM = "streaming query"


class ValueFormat(enum.Enum):
    BINARY = "binary"
    STRING = "string"
    JSON = "json"
    AVRO = "avro"


@dataclass(frozen=True)
class SourceOptions:
    cluster: ClusterOptions
    subscription: Subscription
    start: Position
    end: Position
    isolation: Isolation
    max_offsets_per_trigger: int | None
    min_partitions: int | None
    include_headers: bool
    include_raw_value: bool
    include_value_error: bool
    fail_on_data_loss: bool
    commit_group: str | None
    fetch_bytes: int
    value_format: ValueFormat
    value_schema: str | None
    bad_values_are_null: bool


def parse_source_options(options: Mapping[str, str], use: Use | None = None) -> SourceOptions:
    """Raises OptionError. `use` is unknown when Spark asks for the columns."""
    values = OptionValues(options, NAMES)
    _validate_use(values, use)
    retry_timeout_ms = values.positive("kafka.default.api.timeout.ms") or 60_000
    return SourceOptions(
        cluster=parse_cluster_options(values, retry_timeout_ms=retry_timeout_ms),
        subscription=parse_subscription(values),
        start=_start(values, use),
        end=_end(values),
        isolation=_isolation(values),
        max_offsets_per_trigger=values.positive("maxOffsetsPerTrigger"),
        min_partitions=values.positive("minPartitions"),
        include_headers=values.flag("includeHeaders", False),
        include_raw_value=values.flag("includeRawValue", False),
        include_value_error=values.flag("includeValueError", False),
        fail_on_data_loss=values.flag("failOnDataLoss", True),
        commit_group=values.text("commitGroup"),
        fetch_bytes=values.positive("kafka.max.partition.fetch.bytes") or _FETCH_BYTES,
        value_format=_value_format(values),
        value_schema=values.text("valueSchema"),
        bad_values_are_null=values.choice("valueMode", ("failfast", "permissive")) == "permissive",
    )


def _validate_use(values: OptionValues, use: Use | None) -> None:
    for name in STREAM_ONLY if use is Use.BATCH else ():
        if values.text(name) is not None:
            raise OptionError(f"option {name} is for streaming queries")
    for name in ENDS if use is Use.STREAM else ():
        if values.text(name) is not None:
            raise OptionError(f"option {name} is for batch queries; a stream has no end")


def _isolation(values: OptionValues) -> Isolation:
    names = {isolation.name.lower(): isolation for isolation in Isolation}
    return names[values.choice("kafka.isolation.level", names) or "read_uncommitted"]


def _value_format(values: OptionValues) -> ValueFormat:
    names = [format_.value for format_ in ValueFormat]
    chosen = ValueFormat(values.choice("valueFormat", names) or "binary")
    if chosen in (ValueFormat.BINARY, ValueFormat.STRING) and values.text("valueSchema"):
        raise OptionError(f"option valueSchema has no meaning with valueFormat={chosen.value}")
    for name in ("valueMode", "includeRawValue", "includeValueError"):
        if chosen is ValueFormat.BINARY and values.text(name):
            raise OptionError(f"option {name} has no meaning without valueFormat")
    if chosen is ValueFormat.AVRO and values.text("valueSchema") is None:
        raise OptionError("valueFormat=avro needs option valueSchema: the Avro schema, in JSON")
    return chosen


def _start(values: OptionValues, use: Use | None) -> Position:
    name = values.one_of(STARTS)
    late = values.choice(STRATEGY, ("error", "latest"))
    if late is not None and name in (None, "startingOffsets"):
        raise OptionError(f"option {STRATEGY} needs startingTimestamp or {STARTS[1]}")
    if name == "startingTimestamp":
        return AtTimes(None, values.number(name), name, late == "latest")
    if name == "startingOffsetsByTimestamp":
        return AtTimes(values.offsets(name), None, name, late == "latest")
    text = values.text("startingOffsets")
    if text is None:
        return AtEnd(LATEST if use is Use.STREAM else EARLIEST)
    if text.lower() == "earliest":
        return AtEnd(EARLIEST)
    if text.lower() == "latest":
        if use is Use.BATCH:
            raise OptionError("startingOffsets=latest leaves nothing for a batch query to read")
        return AtEnd(LATEST)
    offsets = values.offsets("startingOffsets")
    if use is Use.BATCH and LATEST in offsets.values():
        raise OptionError("startingOffsets: -1, for latest, leaves nothing to read")
    return AtOffsets(offsets, "startingOffsets")


def _end(values: OptionValues) -> Position:
    name = values.one_of(ENDS)
    if name == "endingTimestamp":
        return AtTimes(None, values.number(name), name, True)
    if name == "endingOffsetsByTimestamp":
        return AtTimes(values.offsets(name), None, name, True)
    text = values.text("endingOffsets")
    if text is None or text.lower() == "latest":
        return AtEnd(LATEST)
    if text.lower() == "earliest":
        raise OptionError("endingOffsets=earliest leaves nothing to read")
    offsets = values.offsets("endingOffsets")
    if EARLIEST in offsets.values():
        raise OptionError("endingOffsets: -2, for earliest, leaves nothing to read")
    return AtOffsets(offsets, "endingOffsets")
