"""Settings of the transaction coordinator, with Kafka's names and defaults."""

from ottla.protocol.config import (
    ConfigKey,
    ConfigValues,
    at_least,
    boolean_key,
    declared_keys,
    int_key,
    short_key,
)
from ottla.protocol.lazy_dataclass import dataclass

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


def _integer(name: str, default: int, doc: str) -> ConfigKey[int]:
    return int_key(name, default, doc, validator=at_least(1))


TRANSACTION_MAX_TIMEOUT_MS = _integer(
    "transaction.max.timeout.ms",
    900_000,
    "The longest transaction timeout that a producer may request.",
)
TRANSACTIONAL_ID_EXPIRATION_MS = _integer(
    "transactional.id.expiration.ms",
    7 * _DAY_MS,
    "How long an unused transactional id is kept.",
)
TRANSACTIONAL_ID_TWO_PHASE_EXPIRATION_MS = _integer(
    "transactional.id.two.phase.expiration.ms",
    _HOUR_MS,
    "How long a transactional id is kept after its first transaction, if that was a two-phase one"
    " and no other followed. The exactly-once Spark sink uses every id once.",
)
TRANSACTION_REMOVE_EXPIRED_INTERVAL_MS = _integer(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    _HOUR_MS,
    "How often to look for expired transactional ids.",
)
TRANSACTION_TWO_PHASE_COMMIT_ENABLE = boolean_key(
    "transaction.two.phase.commit.enable",
    True,
    "Whether a producer may use transactions that never time out and that another system decides "
    "(KIP-939). The exactly-once Spark sink does. Apache Kafka's default is false.",
)
TRANSACTION_PARTITION_VERIFICATION_ENABLE = boolean_key(
    "transaction.partition.verification.enable",
    True,
    "Whether a partition accepts records of a transaction only after it was added to it "
    "(KIP-890). Otherwise a late write from an older client opens a transaction that nobody ends."
    " Newer clients, whose writes add the partition, are not affected.",
    dynamic=True,
)
TRANSACTION_STATE_LOG_NUM_PARTITIONS = _integer(
    "transaction.state.log.num.partitions",
    50,
    "The number of partitions of __transaction_state; it cannot change once the topic exists.",
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR = short_key(
    "transaction.state.log.replication.factor",
    3,
    "The replication factor of __transaction_state; a smaller cluster uses all its brokers,"
    " and adds replicas when others join.",
    validator=at_least(1),
    dynamic=True,
)
TRANSACTION_STATE_LOG_MIN_ISR = _integer(
    "transaction.state.log.min.isr",
    2,
    "min.insync.replicas of __transaction_state; never more than it has replicas.",
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES = _integer(
    "transaction.state.log.segment.bytes",
    100 * 1024 * 1024,
    "The segment size of __transaction_state, kept small so that it is compacted and loaded fast;"
    " at least 1 MiB.",
)

BROKER_KEYS = declared_keys(globals())


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    max_timeout_ms: int = TRANSACTION_MAX_TIMEOUT_MS.default
    id_expiration_ms: int = TRANSACTIONAL_ID_EXPIRATION_MS.default
    two_phase_id_expiration_ms: int = TRANSACTIONAL_ID_TWO_PHASE_EXPIRATION_MS.default
    remove_expired_interval_ms: int = TRANSACTION_REMOVE_EXPIRED_INTERVAL_MS.default
    two_phase_commit: bool = TRANSACTION_TWO_PHASE_COMMIT_ENABLE.default

    @staticmethod
    def of(values: ConfigValues) -> "TransactionConfig":
        return TransactionConfig(
            max_timeout_ms=values[TRANSACTION_MAX_TIMEOUT_MS],
            id_expiration_ms=values[TRANSACTIONAL_ID_EXPIRATION_MS],
            two_phase_id_expiration_ms=values[TRANSACTIONAL_ID_TWO_PHASE_EXPIRATION_MS],
            remove_expired_interval_ms=values[TRANSACTION_REMOVE_EXPIRED_INTERVAL_MS],
            two_phase_commit=values[TRANSACTION_TWO_PHASE_COMMIT_ENABLE],
        )
