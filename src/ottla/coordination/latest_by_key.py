"""Compaction in memory, while a coordinator's log is read.

Of the records with one key only the last counts, for that is all that compaction will leave of
them. The others are dropped here before anyone decodes them: most of a log of commits.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from ottla.records.builder import Record
from ottla.runtime.machine_batches import NOT_PLAIN, StoredBatch

KEYS_MAX: Final = 100_000
PORTION_RECORDS: Final = 1000  # Replayed in two or three milliseconds.


class LatestByKey:
    """Records come out in the order in which they came in last."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[bytes | None, Record] = {}

    @property
    def is_full(self) -> bool:
        return len(self._records) >= KEYS_MAX

    @staticmethod
    def takes(batch: StoredBatch) -> bool:
        """The records of a transaction count or not when its marker comes; order is all there."""
        return not batch.attributes & NOT_PLAIN

    def add(self, records: Sequence[Record]) -> None:
        latest = self._records
        for record in records:
            key = record[2]
            if key in latest:
                del latest[key]  # So that it comes last.
            latest[key] = record

    def drain(self) -> Iterator[list[Record]]:
        """All of them, in portions."""
        records = iter(self._records.values())
        self._records = {}
        while portion := list(islice(records, PORTION_RECORDS)):
            yield portion
