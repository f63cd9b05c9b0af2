"""Table maintenance by the sync that writes it: small files, old versions, unneeded files.

It runs between two batches, in the thread that commits them, so it never competes with its own
writer. Others may change the table meanwhile; conflicts wait for the next pass.

A pass merges a bounded number of bytes. The next one begins once enough time has passed to keep
maintenance within its share, and old versions are looked for once an hour.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark_ottla.data_loss import logger
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.compaction import Compaction
from pyspark_ottla.tables.table import Table, TableChanged

_TARGET_BYTES = 128 * 1024 * 1024
_PASS_BYTES = 256 * 1024 * 1024
_FILES_MIN = 8  # Of similar size.
_VACUUM_S = 3600.0


_SOME = Compaction(_TARGET_BYTES, files_min=_FILES_MIN, tiered=True, budget_bytes=_PASS_BYTES)


@dataclass
class Maintenance:
    """Sent to Spark with the sync; tracks there what it has done."""

    retention_hours: int
    share_percent: float
    compaction: Compaction = _SOME
    clock: Callable[[], float] = time.monotonic
    _due_s: float = float("-inf")
    _vacuum_due_s: float = float("-inf")

    def run_if_due(self, table: Table) -> None:
        began_s = self.clock()
        if began_s < self._due_s:
            return
        try:
            table.compact_some(self.compaction)
            if began_s >= self._vacuum_due_s:
                self._vacuum_due_s = began_s + _VACUUM_S
                table.vacuum(self.retention_hours, dry_run=False)
        except (TableChanged, TableError, OSError) as error:
            logger.warning("%s is not maintained this time: %s", table.address, error)
        ended_s = self.clock()
        self._due_s = ended_s + (ended_s - began_s) * (100 / self.share_percent - 1)
