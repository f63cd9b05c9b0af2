"""What not every Spark 4 has of its data source API, and what stands in for it.

4.0  Spark pushes no filters, and hands Arrow data to the writer of a stream only if it is a writer
     of batches as well.
4.1  Filters, and writers of streams that take Arrow data. Spark asks a source for the latest offset
     without saying where the last micro-batch ended, and sets no limits. For Trigger.AvailableNow
     it asks once if it is told to (`session_settings`), and runs a single micro-batch if not.
4.2  Limits of micro-batches, also with Trigger.AvailableNow.
"""

from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import datasource

VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))

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


HAS_FILTERS = hasattr(datasource.DataSourceReader, "pushFilters")

if TYPE_CHECKING or hasattr(datasource, "DataSourceStreamArrowWriter"):
    StreamArrowWriter = datasource.DataSourceStreamArrowWriter
else:  # Before 4.1.

    class StreamArrowWriter(datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter):
        pass


__all__ = [
    "HAS_FILTERS",
    "HAS_LIMITS",
    "VERSION",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "StreamArrowWriter",
    "SupportsTriggerAvailableNow",
]
