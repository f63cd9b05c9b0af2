"""Keys of OAUTHBEARER, with Kafka's names."""

from collections.abc import Callable
from typing import Any

from ottla.network.token_keys import TokenConfig
from ottla.protocol.config import (
    ConfigKey,
    at_least,
    boolean_key,
    declared_keys,
    int_key,
    list_key,
    long_key,
    string_key,
)

SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = string_key(
    "sasl.oauthbearer.jwks.endpoint.url",
    "",
    "Where to get the keys that verify tokens (JWKS): a file:, http: or https: URL.",
    per_listener=True,
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = string_key(
    "sasl.oauthbearer.expected.issuer",
    "",
    "The required issuer (iss) of tokens. Empty: any.",
    per_listener=True,
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE: ConfigKey[tuple[str, ...]] = list_key(
    "sasl.oauthbearer.expected.audience",
    (),
    "A token must have one of these audiences (aud). Empty: any.",
    per_listener=True,
)
SASL_OAUTHBEARER_EXPECTED_SCOPE: ConfigKey[tuple[str, ...]] = list_key(
    "sasl.oauthbearer.expected.scope",
    (),
    "The scopes that a token must have, all of them. (Not a Kafka key.)",
    per_listener=True,
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = int_key(
    "sasl.oauthbearer.clock.skew.seconds",
    30,
    "How much the clocks of issuer and broker may differ.",
    at_least(0),
    per_listener=True,
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = string_key(
    "sasl.oauthbearer.scope.claim.name",
    "scope",
    "The claim with a token's scopes.",
    per_listener=True,
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = string_key(
    "sasl.oauthbearer.sub.claim.name",
    "sub",
    "The claim with the user's name.",
    per_listener=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = long_key(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    3_600_000,
    "How often the keys for tokens are fetched. They are fetched sooner when a token names an "
    "unknown key.",
    at_least(1),
    per_listener=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = long_key(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    100,
    "The wait before fetching the keys for tokens is retried; it doubles each time.",
    at_least(1),
    per_listener=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = long_key(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    10_000,
    "The longest wait before fetching the keys for tokens is retried, and the shortest time "
    "between two fetches.",
    at_least(1),
    per_listener=True,
)
SASL_OAUTHBEARER_UNSECURED_ALLOWED = boolean_key(
    "sasl.oauthbearer.unsecured.allowed",
    False,
    "Whether to accept tokens without checking their signature, so that anyone can be anyone. For"
    " tests. (Kafka does so by default if no validator is configured.)",
    per_listener=True,
)

BROKER_KEYS = declared_keys(globals())


def token_config(listener: str, value: Callable[[ConfigKey[Any]], Any]) -> TokenConfig:
    config = TokenConfig(
        jwks_url=value(SASL_OAUTHBEARER_JWKS_ENDPOINT_URL),
        issuer=value(SASL_OAUTHBEARER_EXPECTED_ISSUER),
        audience=value(SASL_OAUTHBEARER_EXPECTED_AUDIENCE),
        scopes=value(SASL_OAUTHBEARER_EXPECTED_SCOPE),
        clock_skew_s=value(SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS),
        scope_claim=value(SASL_OAUTHBEARER_SCOPE_CLAIM_NAME),
        name_claim=value(SASL_OAUTHBEARER_SUB_CLAIM_NAME),
        refresh_ms=value(SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS),
        backoff_ms=value(SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS),
        backoff_ms_max=value(SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS),
        unsecured=value(SASL_OAUTHBEARER_UNSECURED_ALLOWED),
    )
    problem = config.problem()
    if problem:
        raise ValueError(f"listener {listener} offers OAUTHBEARER, and {problem}")
    return config
