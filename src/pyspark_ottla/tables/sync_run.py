"""Runs a sync: one streaming query, watched, and stopped between two batches."""

import threading
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyspark_ottla.tables.sync import TopicSync
from pyspark_ottla.tables.sync_plan import SyncPlan
from pyspark_ottla.tables.table import Version, open_table
from pyspark_ottla.tables.topic_ranges import RangesSource

_POLL_S = 0.2
_STOP_TIMEOUT_S = 60
_VERSIONS = 64  # How many to search for new ones.

Report = Callable[[Version], None]


class SyncRun:
    """From `start` to `wait`; `stop` may be called from anywhere, even by a signal."""

    def __init__(
        self, spark: SparkSession, plan: SyncPlan, *, interval_s: float | None, report: Report
    ) -> None:
        """Without an interval it processes what is available, and ends."""
        self._spark = spark
        self._plan = plan
        self._interval_s = interval_s
        self._report = report
        self._stopping = threading.Event()
        self._query: Any = None
        self._seen: set[int] = set()
        self._columns = StructType()  # The table's at the start or its creation.

    def start(self) -> None:
        self._columns = self._plan.prepare_table()
        self._seen = {version.id for version in self._versions()}
        self._spark.dataSource.register(RangesSource)
        stream = self._spark.readStream.format(RangesSource.name())
        sync = TopicSync(self._plan, self._columns, self._plan.table_partitioning())
        writer = (
            stream.options(**self._plan.stream_options())
            .load()
            .writeStream.foreachBatch(sync.write)
            .queryName(f"{self._plan.topic} to {self._plan.table}")
            .option("checkpointLocation", self._plan.checkpoint_location())
        )
        if self._interval_s is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self._interval_s} seconds")
        self._query = writer.start()

    def stop(self) -> None:
        self._stopping.set()

    def wait(self) -> None:
        """Returns when it has ended or `stop` was called; raises the query's error if it failed."""
        try:
            while self._query.isActive and not self._stopping.wait(_POLL_S):
                self._report_new()
            self._let_batch_end()
        finally:
            self._query.stop()
        self._report_new()
        error = self._query.exception()
        if error is not None:
            raise error
        table = open_table(self._plan.table)
        # For a topic without records.
        table.create(self._columns, self._plan.partitioning.columns)
        if self._interval_s is None and self._plan.maintenance is not None:
            self._plan.maintenance.run_if_due(table)  # Even without new records.

    def _let_batch_end(self) -> None:
        """The next run would write an interrupted batch again."""
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        while self._query.isActive and self._query.status["isTriggerActive"]:
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_S)

    def _report_new(self) -> None:
        for version in reversed(self._versions()):
            if version.id not in self._seen:
                self._seen.add(version.id)
                self._report(version)

    def _versions(self) -> list[Version]:
        """By this sync, newest first."""
        table = open_table(self._plan.table)
        if table.schema() is None:
            return []
        return [
            version
            for version in table.versions(_VERSIONS)
            if version.batch is not None and version.batch.sink_id == self._plan.sink_id
        ]
