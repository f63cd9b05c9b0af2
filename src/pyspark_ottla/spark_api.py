"""What differs between the versions of Spark 4, and substitutes for what one lacks.

4.0  Spark pushes no filters, and passes Arrow data to a stream's writer only if it is a batch
     writer as well. Its managers of checkpoint files are in another package.
4.1  Filters, and stream writers that take Arrow data. Spark asks a source for the latest offset
     without saying where the last micro-batch ended, and sets no limits. For Trigger.AvailableNow
     it asks once if configured to (`SETTINGS`), and otherwise runs a single micro-batch.
4.2  Limits of micro-batches, also with Trigger.AvailableNow. Times in Arrow schemas are in UTC only
     on request; before they always were.
"""

from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql import datasource

VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))

_STREAMING = "org.apache.spark.sql.execution.streaming"
CHECKPOINT_FILE_MANAGERS = _STREAMING if VERSION < (4, 1) else f"{_STREAMING}.checkpointing"
ARROW_TIMES_IN_UTC: Final[dict[str, Any]] = {} if VERSION < (4, 2) else {"timezone": "UTC"}

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    HAS_LIMITS = True
except ImportError:  # Before 4.2.
    from dataclasses import dataclass

    HAS_LIMITS = False

    class ReadLimit:  # type: ignore[no-redef]
        pass

    @dataclass(frozen=True)
    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        pass

    @dataclass(frozen=True)
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        max_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


# Before 4.2 Trigger.AvailableNow is one batch for a source in Python, even if that repeats another,
# and none follows that closes windows. With this it goes on until it is where the topics ended when
# it began.
SETTINGS: Final[dict[str, str]] = (
    {} if HAS_LIMITS else {"spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true"}
)

HAS_FILTERS = hasattr(datasource.DataSourceReader, "pushFilters")

if TYPE_CHECKING or hasattr(datasource, "DataSourceStreamArrowWriter"):
    StreamArrowWriter = datasource.DataSourceStreamArrowWriter
else:  # Before 4.1.

    class StreamArrowWriter(datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter):
        pass


def is_connect(item: object) -> bool:
    """Whether a session or frame is Spark Connect's, which runs elsewhere."""
    return type(item).__module__.startswith("pyspark.sql.connect.")


__all__ = [
    "ARROW_TIMES_IN_UTC",
    "CHECKPOINT_FILE_MANAGERS",
    "HAS_FILTERS",
    "HAS_LIMITS",
    "SETTINGS",
    "VERSION",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "StreamArrowWriter",
    "SupportsTriggerAvailableNow",
    "is_connect",
]
