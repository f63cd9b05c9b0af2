"""The keys of OAUTHBEARER, with Kafka's names."""

from collections.abc import Callable
from typing import Any, cast

from ottla.network.token_keys import TokenConfig
from ottla.protocol.config import ConfigKey, ConfigType, at_least

SASL_OAUTHBEARER_JWKS_ENDPOINT_URL = ConfigKey(
    "sasl.oauthbearer.jwks.endpoint.url",
    ConfigType.STRING,
    "",
    "Where the keys are that tokens are signed with (JWKS): a file:, http: or https: URL.",
    per_listener=True,
)
SASL_OAUTHBEARER_EXPECTED_ISSUER = ConfigKey(
    "sasl.oauthbearer.expected.issuer",
    ConfigType.STRING,
    "",
    "The issuer (iss) that a token must have. Empty: any.",
    per_listener=True,
)
SASL_OAUTHBEARER_EXPECTED_AUDIENCE: ConfigKey[tuple[str, ...]] = ConfigKey(
    "sasl.oauthbearer.expected.audience",
    ConfigType.LIST,
    (),
    "The audiences (aud) of which a token must have one. Empty: any.",
    per_listener=True,
)
SASL_OAUTHBEARER_EXPECTED_SCOPE: ConfigKey[tuple[str, ...]] = ConfigKey(
    "sasl.oauthbearer.expected.scope",
    ConfigType.LIST,
    (),
    "The scopes that a token must have, all of them. (Kafka has no such key.)",
    per_listener=True,
)
SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS = ConfigKey(
    "sasl.oauthbearer.clock.skew.seconds",
    ConfigType.INT,
    30,
    "By how much the clocks of issuer and broker may differ.",
    at_least(0),
    per_listener=True,
)
SASL_OAUTHBEARER_SCOPE_CLAIM_NAME = ConfigKey(
    "sasl.oauthbearer.scope.claim.name",
    ConfigType.STRING,
    "scope",
    "The claim that has the scopes of a token.",
    per_listener=True,
)
SASL_OAUTHBEARER_SUB_CLAIM_NAME = ConfigKey(
    "sasl.oauthbearer.sub.claim.name",
    ConfigType.STRING,
    "sub",
    "The claim that names the user.",
    per_listener=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS = ConfigKey(
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    ConfigType.LONG,
    3_600_000,
    "How often the keys of tokens are fetched again. They are fetched sooner when a token names "
    "one that is not there.",
    at_least(1),
    per_listener=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS = ConfigKey(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    ConfigType.LONG,
    100,
    "How soon the keys of tokens are asked for again after a failure; it doubles each time.",
    at_least(1),
    per_listener=True,
)
SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS = ConfigKey(
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    ConfigType.LONG,
    10_000,
    "The longest wait before the keys of tokens are asked for again, and the shortest time between "
    "two fetches.",
    at_least(1),
    per_listener=True,
)
SASL_OAUTHBEARER_UNSECURED_ALLOWED = ConfigKey(
    "sasl.oauthbearer.unsecured.allowed",
    ConfigType.BOOLEAN,
    False,
    "Whether tokens count without a check of their signature, so that anyone can be anyone. For "
    "tests. (Kafka's default does so where no validator is configured.)",
    per_listener=True,
)

BROKER_KEYS: tuple[ConfigKey[object], ...] = cast(
    "tuple[ConfigKey[object], ...]",
    (
        SASL_OAUTHBEARER_JWKS_ENDPOINT_URL,
        SASL_OAUTHBEARER_EXPECTED_ISSUER,
        SASL_OAUTHBEARER_EXPECTED_AUDIENCE,
        SASL_OAUTHBEARER_EXPECTED_SCOPE,
        SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS,
        SASL_OAUTHBEARER_SCOPE_CLAIM_NAME,
        SASL_OAUTHBEARER_SUB_CLAIM_NAME,
        SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS,
        SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS,
        SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS,
        SASL_OAUTHBEARER_UNSECURED_ALLOWED,
    ),
)


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
