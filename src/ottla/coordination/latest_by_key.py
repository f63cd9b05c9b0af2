"""In-memory compaction while a coordinator's log is read.

Only the last record of each key counts, since compaction would leave nothing else. The others are
dropped here before they are decoded: they are most of a log of commits.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from ottla.records.builder import Record
from ottla.runtime.machine_batches import NOT_PLAIN, StoredBatch

KEYS_MAX: Final = 100_000
PORTION_RECORDS: Final = 1000  # Replayed in two or three milliseconds.


class LatestByKey:
    """Records are returned in the order in which they were last added."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[bytes | None, Record] = {}

    @property
    def is_full(self) -> bool:
        return len(self._records) >= KEYS_MAX

    @staticmethod
    def takes(batch: StoredBatch) -> bool:
        """Not transactional records: they count only once the marker comes, so order matters."""
        return not batch.attributes & NOT_PLAIN

    def add(self, records: Sequence[Record]) -> None:
        latest = self._records
        for record in records:
            key = record[2]
            if key in latest:
                del latest[key]  # Moves it to the end.
            latest[key] = record

    def drain(self) -> Iterator[list[Record]]:
        """Return all of them, in portions."""
        records = iter(self._records.values())
        self._records = {}
        while portion := list(islice(records, PORTION_RECORDS)):
            yield portion
