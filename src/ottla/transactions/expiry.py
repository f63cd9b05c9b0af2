"""Transactional ids that nobody has used for long are forgotten."""

from itertools import islice

from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import IDLE
from ottla.transactions.store import TransactionStore

TOMBSTONES_MAX = 1000  # In one batch; the rest comes with the next.


def expire_ids(
    store: TransactionStore, expiration_ms: int, now_ms: int
) -> tuple[tuple[TransactionRecord, ...], bool]:
    """Tombstones, and whether they are all. An id with an open transaction does not expire."""
    expired = (
        TransactionRecord(transactional_id, None)
        for transactional_id, transaction in store
        if transaction.state in IDLE and transaction.updated_ms + expiration_ms <= now_ms
    )
    tombstones = tuple(islice(expired, TOMBSTONES_MAX))
    return tombstones, len(tombstones) < TOMBSTONES_MAX
