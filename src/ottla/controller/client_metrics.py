"""Client metrics subscriptions (KIP-714): which clients push which metrics.

A subscription is a config resource. A client pushes the metrics of all matching subscriptions, at
the shortest of their intervals.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ottla.protocol.config import ConfigKey, ConfigSchema, ConfigValues, between, int_key, list_key
from ottla.protocol.errors import ApiError
from ottla.protocol.lazy_dataclass import dataclass

ALL_METRICS: Final = "*"
INTERVAL_MS_DEFAULT: Final = 300_000
_SELECTORS: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def _match_problem(patterns: tuple[str, ...]) -> str | None:
    for text in patterns:
        selector, equals, pattern = text.partition("=")
        if not equals or selector.strip() not in _SELECTORS:
            return f"{text!r} is not SELECTOR=REGEX with one of {', '.join(_SELECTORS)}"
        try:
            re.compile(pattern)
        except re.error as error:
            return f"{pattern!r} is no regular expression: {error}"
    return None


INTERVAL_MS: ConfigKey[Any] = int_key(
    "interval.ms",
    INTERVAL_MS_DEFAULT,
    "How often the clients push their metrics.",
    between(100, 3_600_000),
)
MATCH: ConfigKey[Any] = list_key(
    "match",
    (),
    "Which clients: SELECTOR=REGEX, all of which have to match; none matches every client.",
    _match_problem,
)
METRICS: ConfigKey[Any] = list_key(
    "metrics",
    (),
    "Prefixes of the names of the metrics to push; * for all of them, nothing for none.",
)
CLIENT_METRICS_SCHEMA: Final = ConfigSchema((INTERVAL_MS, MATCH, METRICS))


class ClientDescription(NamedTuple):
    """In the order of the selectors."""

    instance_id: str
    client_id: str
    software_name: str
    software_version: str
    source_address: str
    source_port: str


class Request(NamedTuple):
    """What a client is asked to push."""

    metrics: tuple[str, ...]
    interval_ms: int


@dataclass(frozen=True, slots=True)
class Subscription:
    metrics: tuple[str, ...]
    interval_ms: int
    patterns: tuple[tuple[int, re.Pattern[str]], ...]  # By the index of the selector.

    @classmethod
    def of(cls, stored: Mapping[str, str]) -> "Subscription":
        parsed = {}
        for name, text in stored.items():
            try:
                parsed[name] = CLIENT_METRICS_SCHEMA[name].parse(text)
            except ApiError:
                continue  # Another release accepted it.
        values = ConfigValues(parsed)
        pairs = [text.partition("=") for text in values[MATCH]]
        patterns = tuple(
            (_SELECTORS.index(selector.strip()), re.compile(pattern.strip()))
            for selector, _, pattern in pairs
        )
        return cls(values[METRICS], values[INTERVAL_MS], patterns)

    def matches(self, client: ClientDescription) -> bool:
        return all(pattern.fullmatch(client[index]) for index, pattern in self.patterns)


def request_of(subscriptions: Iterable[Subscription], client: ClientDescription) -> Request:
    matching = [subscription for subscription in subscriptions if subscription.matches(client)]
    metrics = {name for subscription in matching for name in subscription.metrics}
    if ALL_METRICS in metrics:
        metrics = {ALL_METRICS}
    interval_ms = min(
        [INTERVAL_MS_DEFAULT, *(subscription.interval_ms for subscription in matching)]
    )
    return Request(tuple(sorted(metrics)), interval_ms)
