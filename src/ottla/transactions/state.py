"""The states of a transaction, and how each is reached.

    from            to              by
    (nothing)       EMPTY           InitProducerId with a new transactional id
    EMPTY           EMPTY           InitProducerId
    EMPTY           ONGOING         AddPartitionsToTxn, AddOffsetsToTxn, the first write (KIP-890)
    EMPTY           PREPARE_ABORT   EndTxn aborts a transaction without partitions (KIP-890)
    ONGOING         ONGOING         more partitions; InitProducerId that keeps what is prepared
    ONGOING         PREPARE_COMMIT  EndTxn commits
    ONGOING         PREPARE_ABORT   EndTxn aborts, time is up, InitProducerId by a new producer
    PREPARE_COMMIT  COMPLETE_COMMIT every marker is written
    PREPARE_ABORT   COMPLETE_ABORT  every marker is written
    COMPLETE_*      EMPTY           InitProducerId
    COMPLETE_*      ONGOING         as from EMPTY
    COMPLETE_*      PREPARE_ABORT   as from EMPTY
    EMPTY           DEAD            the transactional id has expired
    COMPLETE_*      DEAD            the transactional id has expired

What a PREPARE state has decided is never taken back. DEAD is not written: the record that says so
is a tombstone. PREPARE_EPOCH_FENCE is a state of Kafka between two records, in which it raises the
epoch of a producer before it aborts; here that is one step, and the state never seen.
"""

import enum


class TransactionState(enum.Enum):
    """The number is that of the log, the name that which clients are shown."""

    EMPTY = (0, "Empty")
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")
    DEAD = (6, "Dead")
    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")

    def __init__(self, number: int, kafka_name: str) -> None:
        self.number = number
        self.kafka_name = kafka_name


BY_NUMBER = {state.number: state for state in TransactionState}
BY_NAME = {state.kafka_name: state for state in TransactionState}

_IDLE = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)
IDLE = frozenset(_IDLE)  # Nothing is open: another transaction can begin.
DECIDED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})

VALID_NEXT: dict[TransactionState, frozenset[TransactionState]] = {
    **dict.fromkeys(
        _IDLE,
        frozenset(
            {
                TransactionState.EMPTY,
                TransactionState.ONGOING,
                TransactionState.PREPARE_ABORT,
                TransactionState.DEAD,
            }
        ),
    ),
    TransactionState.ONGOING: frozenset(
        {
            TransactionState.ONGOING,
            TransactionState.PREPARE_COMMIT,
            TransactionState.PREPARE_ABORT,
        }
    ),
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.COMPLETE_COMMIT}),
    TransactionState.PREPARE_ABORT: frozenset({TransactionState.COMPLETE_ABORT}),
    TransactionState.DEAD: frozenset({TransactionState.EMPTY}),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.PREPARE_ABORT}),
}
