"""Filters the fetched batches that a reader may see.

A broker sends batches as they are in its log. Control batches are for the reader itself, and a
reader of committed records omits those of aborted transactions: the broker lists the transactions,
and the abort marker in the log ends each. The list in a response is complete for its batches, so
nothing is kept between responses.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.records.batch import BatchHeader, Buffer, iterate_headers, validate_checksum
from ottla.records.decoder import ControlType, control_type, iterate_records


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class FoundBatch(NamedTuple):
    position: int  # In the buffer that was scanned.
    header: BatchHeader


class Scan(NamedTuple):
    batches: list[FoundBatch]
    next_offset: int  # Where to resume: after every complete batch, visible or not.


def scan_batches(
    buffer: Buffer,
    start_offset: int,
    end_offset: int,
    aborted: Iterable[AbortedTransaction] = (),
) -> Scan:
    """The batches with records in `[start_offset, end_offset)` that the reader may see.

    `aborted` is empty for a reader of uncommitted records. Verifies every checksum; CorruptBatch if
    a batch is damaged.
    """
    batches = []
    next_offset = start_offset
    transactions = _AbortedTransactions(sorted(aborted, key=_by_first_offset))
    for position, header in iterate_headers(buffer):
        validate_checksum(buffer, position, header)
        if header.next_offset <= start_offset:
            continue
        if header.base_offset >= end_offset:
            next_offset = end_offset
            break
        next_offset = header.next_offset
        if transactions.advance(buffer, position, header) and header.records_count:
            batches.append(FoundBatch(position, header))
    return Scan(batches, next_offset)


def _by_first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset


class _AbortedTransactions:
    """Tracks the transactions while batches are visited in log order."""

    def __init__(self, ordered: Sequence[AbortedTransaction]) -> None:
        self._waiting = list(reversed(ordered))
        self._open: set[int] = set()

    def advance(self, buffer: Buffer, position: int, header: BatchHeader) -> bool:
        """Advance past the next batch; returns whether readers may see its records."""
        while self._waiting and self._waiting[-1].first_offset <= header.last_offset:
            self._open.add(self._waiting.pop().producer_id)
        if header.is_control:
            if header.producer_id in self._open and _is_abort(buffer, position):
                self._open.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._open)


def _is_abort(buffer: Buffer, position: int) -> bool:
    return any(
        control_type(record) == ControlType.ABORT for record in iterate_records(buffer, position)
    )
