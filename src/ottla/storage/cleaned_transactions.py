"""Follows transactions while compaction goes through a log from its beginning.

Only what lies before the last stable offset is compacted, so every transaction in it has ended,
perhaps later than the part that is compacted. A marker can go once compaction has met no batch of
its transaction: then nothing in the log needs it any more.
"""

import heapq
from collections.abc import Callable, Iterable

from ottla.records.batch import BatchHeader
from ottla.records.decoder import ControlType, Marker
from ottla.storage.transaction_index import AbortedTransaction


class CleanedTransactions:
    __slots__ = ("_aborted", "_coming", "_committed", "_known", "_with_batches")

    def __init__(self) -> None:
        self._coming: list[tuple[int, AbortedTransaction]] = []  # A heap, by first offset.
        self._known: set[AbortedTransaction] = set()
        self._aborted: dict[int, AbortedTransaction] = {}  # By producer id, while it is open.
        self._with_batches: set[int] = set()  # Producers of which an aborted batch was met.
        self._committed: set[int] = set()  # Producers of which another transaction is open.

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Known in time: before the first batch that one of them could have."""
        for transaction in transactions:
            if transaction not in self._known:
                self._known.add(transaction)
                heapq.heappush(self._coming, (transaction.first_offset, transaction))

    def on_batch(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction, so that nobody reads it."""
        self._open_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._with_batches.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def on_marker(
        self,
        header: BatchHeader,
        marker: Marker | None,
        keep: Callable[[AbortedTransaction], None] | None = None,
    ) -> bool:
        """Whether a control batch can go; `keep` is told of an aborted transaction that cannot.

        Without a marker the batch was emptied before, or is a control batch of another kind.
        """
        self._open_up_to(header.last_offset)
        producer_id = header.producer_id
        if marker is None:
            return header.records_count == 0
        if marker.type is ControlType.COMMIT:
            had_batches = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_batches
        transaction = self._aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._with_batches:
            return True
        self._with_batches.discard(producer_id)
        if keep is not None:
            keep(transaction)
        return False

    def _open_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            _, transaction = heapq.heappop(self._coming)
            self._aborted.setdefault(transaction.producer_id, transaction)
