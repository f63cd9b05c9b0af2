"""Transactional ids that nobody has used for long are forgotten.

Those that were made for one two-phase transaction go sooner: who prepares in one process and
decides in another takes a new id each time, and there would be many of them.
"""

from itertools import islice

from ottla.transactions.config import TransactionConfig
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import IDLE
from ottla.transactions.store import TransactionStore
from ottla.transactions.transaction import Transaction

TOMBSTONES_MAX = 1000  # In one batch; the rest comes with the next.


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
