"""Tracks transactions while compaction reads a log from its beginning.

Only the part before the last stable offset is compacted, so every transaction in it has ended,
perhaps after the part that is compacted. A marker can go once compaction meets no batch of its
transaction: then nothing in the log needs it any more.
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
        self._aborted: dict[int, AbortedTransaction] = {}  # Open ones, by producer id.
        self._with_batches: set[int] = set()  # Producers with an aborted batch so far.
        self._committed: set[int] = set()  # Producers with an open transaction that will commit.

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Call before the first batch that could belong to one of them."""
        for transaction in transactions:
            if transaction not in self._known:
                self._known.add(transaction)
                heapq.heappush(self._coming, (transaction.first_offset, transaction))

    def on_batch(self, header: BatchHeader) -> bool:
        """Whether the data batch belongs to an aborted transaction and can be dropped."""
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
        """Whether the control batch can go; `keep` gets an aborted transaction that must stay.

        Without a marker, the batch was emptied before or is another kind of control batch.
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
