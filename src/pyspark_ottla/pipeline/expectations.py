"""Which rows are good, and what happens to the others.

A row is good when every check is true. Dropped rows are counted; quarantined rows become records of
the dead-letter topic: the record itself if a source refused it, the row as JSON if a step did, with
headers that say who refused it and why.
"""

import operator
from functools import reduce
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyspark_ottla.pipeline.model import Expectation, Otherwise, Source, Step

RAW_VALUE: Final = "_raw_value"  # The bytes that a value was decoded from.
BAD_VALUE: Final = "_bad_value"  # Whether they do not fit the schema.
VALUE_ERROR: Final = "_value_error"  # Why.
BAD_VALUE_REASON: Final = "bad value"
OBSERVED: Final = "expect."  # Prefix of the dataset's name in a query's observed metrics.

HEADER_PIPELINE: Final = "ottla.pipeline"
HEADER_DATASET: Final = "ottla.dataset"
HEADER_REASON: Final = "ottla.reason"
HEADER_DETAIL: Final = "ottla.detail"
HEADER_TOPIC: Final = "ottla.topic"
HEADER_PARTITION: Final = "ottla.partition"
HEADER_OFFSET: Final = "ottla.offset"

_HIDDEN: Final = (RAW_VALUE, BAD_VALUE, VALUE_ERROR)
_NO_HEADERS: Final = "cast(array() as array<struct<key:string,value:binary>>)"


class Judged(NamedTuple):
    good: DataFrame
    bad: DataFrame | None  # Records, if rows are quarantined.


def judge_rows(frame: DataFrame, pipeline: str, dataset: Source | Step) -> Judged:
    hidden = [name for name in _HIDDEN if name in frame.columns]
    has_bad_values = BAD_VALUE in hidden and isinstance(dataset, Source)
    if not dataset.expectations and not has_bad_values:
        return Judged(frame, None)
    bad = _quarantined(frame, pipeline, dataset) if dataset.quarantines else None
    is_read = ~F.col(BAD_VALUE) if has_bad_values else F.lit(True)
    kept = [is_read, *(_is_good(each) for each in dataset.expectations if not _fails(each))]
    is_kept = reduce(operator.and_, kept)
    for expectation in filter(_fails, dataset.expectations):
        # A dropped row need not pass the other checks.
        frame = frame.where(_guard(frame, dataset, expectation, is_kept))
    # Nothing later is pushed below the observation, so that every row is examined.
    good = _observed(frame, dataset, is_read, has_bad_values).where(is_kept)
    return Judged(good.drop(*hidden), bad)


def _fails(expectation: Expectation) -> bool:
    return expectation.otherwise is Otherwise.FAIL


def _is_good(expectation: Expectation) -> Column:
    return F.coalesce(F.expr(expectation.check), F.lit(False))


def _guard(
    frame: DataFrame, dataset: Source | Step, expectation: Expectation, is_kept: Column
) -> Column:
    reason = f"{dataset.name}: a row is not as {expectation.name} expects ({expectation.check}): "
    shown = [name for name in frame.columns if name not in _HIDDEN]
    row = F.to_json(F.struct(*(F.col(f"`{name}`") for name in shown)))
    failing = F.raise_error(F.concat(F.lit(reason), row)).cast("boolean")
    return F.when(~is_kept | _is_good(expectation), F.lit(True)).otherwise(failing)


def _observed(
    frame: DataFrame, dataset: Source | Step, is_read: Column, has_bad_values: bool
) -> DataFrame:
    # A value that cannot be read has no fields to check.
    counts = [
        F.count_if(is_read & ~_is_good(each)).alias(each.name) for each in dataset.expectations
    ]
    if has_bad_values:
        counts.append(F.count_if(~is_read).alias(BAD_VALUE))
    return frame.observe(OBSERVED + dataset.name, *counts)


def _quarantined(frame: DataFrame, pipeline: str, dataset: Source | Step) -> DataFrame:
    reasons = [
        F.when(~_is_good(each), F.lit(each.name))
        for each in dataset.expectations
        if each.otherwise is Otherwise.QUARANTINE
    ]
    if BAD_VALUE in frame.columns:
        is_bad = F.col(BAD_VALUE)
        reasons = [F.when(~is_bad, reason) for reason in reasons]
        if isinstance(dataset, Source) and dataset.bad_values is Otherwise.QUARANTINE:
            reasons.append(F.when(is_bad, F.lit(BAD_VALUE_REASON)))
    reason = F.concat_ws(", ", *reasons)
    rows = frame.where(reduce(operator.or_, (each.isNotNull() for each in reasons)))
    if isinstance(dataset, Source):
        return _source_records(rows, pipeline, dataset, reason)
    headers = _headers(pipeline, dataset, reason, {})
    value = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    return rows.select(value.cast("binary").alias("value"), headers.alias("headers"))


def _source_records(rows: DataFrame, pipeline: str, source: Source, reason: Column) -> DataFrame:
    prefix = "_" if "_offset" in rows.columns else ""
    value = RAW_VALUE if RAW_VALUE in rows.columns else "value"
    origin = {
        HEADER_TOPIC: f"{prefix}topic",
        HEADER_PARTITION: f"{prefix}partition",
        HEADER_OFFSET: f"{prefix}offset",
    }
    headers = _headers(pipeline, source, reason, origin)
    if VALUE_ERROR in rows.columns:
        detail = F.array(_header(HEADER_DETAIL, F.col(VALUE_ERROR)))
        is_reported = F.col(VALUE_ERROR).isNotNull()
        headers = F.concat(headers, F.when(is_reported, detail).otherwise(F.expr(_NO_HEADERS)))
    if source.has_headers:
        own = F.coalesce(F.col(f"{prefix}headers"), F.expr(_NO_HEADERS))
        headers = F.concat(own, headers)
    return rows.select(
        F.col(f"{prefix}key").cast("binary").alias("key"),
        F.col(value).cast("binary").alias("value"),
        headers.alias("headers"),
    )


def _headers(
    pipeline: str, dataset: Source | Step, reason: Column, origin: dict[str, str]
) -> Column:
    values: dict[str, Any] = {
        HEADER_PIPELINE: F.lit(pipeline),
        HEADER_DATASET: F.lit(dataset.name),
        HEADER_REASON: reason,
    } | {name: F.col(column) for name, column in origin.items()}
    return F.array(*(_header(name, value) for name, value in values.items()))


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
