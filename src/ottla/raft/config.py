"""Broker keys of the quorum."""

from typing import Final

from ottla.protocol.config import ConfigValues, at_least, declared_keys, int_key
from ottla.protocol.entities import entity

ELECTION_TIMEOUT_MS: Final = int_key(
    "controller.quorum.election.timeout.ms",
    3000,
    "A voter without a leader waits one to two times this long before it asks for votes, and as "
    "long for the votes. Kafka's default is 1000.",
    validator=at_least(1),
)
FETCH_TIMEOUT_MS: Final = int_key(
    "controller.quorum.fetch.timeout.ms",
    6000,
    "A voter that cannot fetch from the leader for this long asks for votes; a leader that no "
    "majority has fetched from for one and a half times this long resigns. This is for machines "
    "that hang or are unreachable: a leader whose process has ended is replaced at once. Kafka's "
    "default is 2000.",
    validator=at_least(1),
)
ELECTION_BACKOFF_MAX_MS: Final = int_key(
    "controller.quorum.election.backoff.max.ms",
    1000,
    "The longest wait after a lost election.",
    validator=at_least(1),
)
REQUEST_TIMEOUT_MS: Final = int_key(
    "controller.quorum.request.timeout.ms",
    2000,
    "Timeout of requests to other replicas.",
    validator=at_least(1),
)
RETRY_BACKOFF_MS: Final = int_key(
    "controller.quorum.retry.backoff.ms",
    20,
    "The wait before a failed request to a replica is retried.",
    validator=at_least(1),
)

_FETCH_MAX_WAIT_MS: Final = 500

BROKER_KEYS = declared_keys(globals())


@entity
class RaftConfig:
    """The configuration of the core, and the limits for which Kafka has no keys."""

    election_timeout_ms: int = ELECTION_TIMEOUT_MS.default
    fetch_timeout_ms: int = FETCH_TIMEOUT_MS.default
    election_backoff_max_ms: int = ELECTION_BACKOFF_MAX_MS.default
    request_timeout_ms: int = REQUEST_TIMEOUT_MS.default
    retry_backoff_ms: int = RETRY_BACKOFF_MS.default
    fetch_max_wait_ms: int = _FETCH_MAX_WAIT_MS
    fetch_bytes_max: int = 1024 * 1024
    snapshot_chunk_bytes_max: int = 1024 * 1024

    @classmethod
    def of(cls, values: ConfigValues) -> "RaftConfig":
        return cls(
            election_timeout_ms=values[ELECTION_TIMEOUT_MS],
            fetch_timeout_ms=values[FETCH_TIMEOUT_MS],
            election_backoff_max_ms=values[ELECTION_BACKOFF_MAX_MS],
            request_timeout_ms=values[REQUEST_TIMEOUT_MS],
            retry_backoff_ms=values[RETRY_BACKOFF_MS],
            fetch_max_wait_ms=min(
                _FETCH_MAX_WAIT_MS, values[FETCH_TIMEOUT_MS] // 4, values[REQUEST_TIMEOUT_MS] // 2
            ),
        )

    @property
    def check_quorum_timeout_ms(self) -> int:
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_interval_ms(self) -> int:
        """How often a leader contacts the voters that do not fetch."""
        return self.fetch_timeout_ms // 2
