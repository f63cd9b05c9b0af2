"""Expires transactional ids that have not been used for long.

Those created for a single two-phase transaction expire sooner: an application that prepares in one
process and decides in another uses a new id each time, and there would be many of them.
"""

from itertools import islice

from ottla.transactions.config import TransactionConfig
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import IDLE
from ottla.transactions.store import TransactionStore
from ottla.transactions.transaction import Transaction

TOMBSTONES_MAX = 1000  # Per batch; the rest follows in the next one.


def expire_ids(
    store: TransactionStore, config: TransactionConfig, now_ms: int
) -> tuple[tuple[TransactionRecord, ...], bool]:
    """Tombstones, and whether they are all. An id with an open transaction does not expire."""
    expired = (
        TransactionRecord(transactional_id, None)
        for transactional_id, transaction in store
        if transaction.state in IDLE and _expires_ms(transaction, config) <= now_ms
    )
    tombstones = tuple(islice(expired, TOMBSTONES_MAX))
    return tombstones, len(tombstones) < TOMBSTONES_MAX


def _expires_ms(transaction: Transaction, config: TransactionConfig) -> int:
    expiration_ms = config.id_expiration_ms
    if transaction.is_spent:
        expiration_ms = min(expiration_ms, config.two_phase_id_expiration_ms)
    return transaction.updated_ms + expiration_ms
