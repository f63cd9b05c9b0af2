"""The states of a transaction, and its transitions.

    from            to              by
    (nothing)       EMPTY           InitProducerId with a new transactional id
    EMPTY           EMPTY           InitProducerId
    EMPTY           ONGOING         AddPartitionsToTxn, AddOffsetsToTxn, the first write (KIP-890)
    EMPTY           PREPARE_ABORT   EndTxn aborts a transaction without partitions (KIP-890)
    ONGOING         ONGOING         more partitions; InitProducerId that keeps the prepared one
    ONGOING         PREPARE_COMMIT  EndTxn commits
    ONGOING         PREPARE_ABORT   EndTxn aborts, timeout, InitProducerId by a new producer
    PREPARE_COMMIT  COMPLETE_COMMIT every marker is written
    PREPARE_ABORT   COMPLETE_ABORT  every marker is written
    COMPLETE_*      EMPTY           InitProducerId
    COMPLETE_*      ONGOING         as from EMPTY
    COMPLETE_*      PREPARE_ABORT   as from EMPTY
    EMPTY           DEAD            the transactional id has expired
    COMPLETE_*      DEAD            the transactional id has expired

The decision of a PREPARE state is final. DEAD is not written: its record is a tombstone.
PREPARE_EPOCH_FENCE is a state that Kafka has between two records, in which it raises a producer's
epoch before it aborts; here that is one step, so the state never occurs.
"""

import enum


class TransactionState(enum.Enum):
    """The number is used in the log, the name is shown to clients."""

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
