"""Records that belong to a producer's transaction.

A machine whose log is a partition can take part in transactions, as the group coordinator does with
offsets committed by a producer. Such a record is in the log at once, but counts only once the
marker that ends the transaction commits it.

The runtime appends the records of a result as one batch, so they are either all `Transactional`
with the same producer (a transactional batch of that producer, without sequence numbers), or a
single `TransactionMarker` (a control batch), or neither. Replay sees the same objects, live and
when the log is loaded: codecs never see these two, only the record inside.
"""

from ottla.protocol.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Transactional:
    producer_id: int
    producer_epoch: int
    record: object


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int  # Of the deciding transaction coordinator.
    committed: bool
