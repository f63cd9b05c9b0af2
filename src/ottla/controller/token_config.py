"""Keys of delegation tokens, with Kafka's names."""

from typing import Any, Final

from ottla.protocol.config import ConfigKey, at_least, long_key, password_key

_DAY_MS: Final = 86_400_000

DELEGATION_TOKEN_SECRET_KEY: Final = password_key(
    "delegation.token.secret.key",
    "",
    "The secret that delegation tokens are derived from; the same on all nodes. Without it there "
    "are no tokens.",
)
DELEGATION_TOKEN_MAX_LIFETIME_MS: Final = long_key(
    "delegation.token.max.lifetime.ms",
    7 * _DAY_MS,
    "The maximum lifetime of a delegation token, renewals included.",
    validator=at_least(1),
)
DELEGATION_TOKEN_EXPIRY_TIME_MS: Final = long_key(
    "delegation.token.expiry.time.ms",
    _DAY_MS,
    "How long a delegation token is valid without renewal.",
    validator=at_least(1),
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS: Final = long_key(
    "delegation.token.expiry.check.interval.ms",
    3_600_000,
    "How often the controller removes delegation tokens that have expired.",
    validator=at_least(1),
)

BROKER_KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    DELEGATION_TOKEN_SECRET_KEY,
    DELEGATION_TOKEN_MAX_LIFETIME_MS,
    DELEGATION_TOKEN_EXPIRY_TIME_MS,
    DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS,
)
