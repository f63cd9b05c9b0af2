"""Subscriptions: records of a topic sent to a URL, and how subscriptions are stored.

A subscription is a record of a compacted topic, with its id as key. Its deliveries are those of a
share group, so the brokers know what was delivered, what waits for a retry and what became a dead
letter, and a gateway that dies leaves nothing behind.
"""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ottla.gateway.core.filters import EVERYTHING, Filter, parse_filter
from ottla.gateway.core.webhook_calls import WebhookAnswer, parse_url
from ottla.gateway.core.webhook_signatures import new_secret, parse_secret

TOPIC = "__gateway_subscriptions"
PARTITIONS_COUNT = 16

FIRST_RETRY_MS = 5_000
RETRY_MS_MAX = 3_600_000
CONCURRENCY = 4
CONCURRENCY_MAX = 64
MAX_DELIVERIES = 5
MAX_DELIVERIES_MAX = 25  # The maximum that a share group can be configured to.

ACTIVE = "active"
DISABLED = "disabled"

_FIELDS = frozenset(
    {"url", "topic", "group", "filter", "secret", "start", "max_deliveries", "concurrency"}
)
_SHOWN = (
    "id",
    "url",
    "topic",
    "group",
    "start",
    "max_deliveries",
    "concurrency",
    "state",
    "reason",
    "created_ms",
)
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    id: str
    url: str
    topic: str
    group: str
    secret: str = field(repr=False)
    filter: Filter = EVERYTHING
    start: str = "latest"
    max_deliveries: int = MAX_DELIVERIES
    concurrency: int = CONCURRENCY
    state: str = ACTIVE
    reason: str = ""  # Why it was disabled.
    created_ms: int = 0

    @classmethod
    def create(cls, data: object, now_ms: int) -> Self:
        """From a user's request. Raises ValueError with the reason."""
        if not isinstance(data, Mapping):
            raise ValueError("a subscription is an object")
        unknown = sorted(set(data) - _FIELDS)
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is not a field; there are {', '.join(sorted(_FIELDS))}"
            )
        number = secrets.token_hex(12)
        start = data.get("start", "latest")
        if start not in ("latest", "earliest"):
            raise ValueError("start is latest or earliest")
        secret = _text(data, "secret", new_secret())
        parse_secret(secret)
        url = _text(data, "url")
        parse_url(url)
        return cls(
            id=number,
            url=url,
            topic=_name(data, "topic"),
            group=_name(data, "group", f"webhook-{number}"),
            secret=secret,
            filter=parse_filter(data.get("filter")),
            start=str(start),
            max_deliveries=_count(data, "max_deliveries", MAX_DELIVERIES, 2, MAX_DELIVERIES_MAX),
            concurrency=_count(data, "concurrency", CONCURRENCY, 1, CONCURRENCY_MAX),
            created_ms=now_ms,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The inverse of `to_bytes`. Raises ValueError for anything else."""
        try:
            found = json.loads(data)
            return cls(**(found | {"filter": parse_filter(found["filter"])}))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a subscription: {error}") from None

    def to_bytes(self) -> bytes:
        return json.dumps(self._fields() | {"secret": self.secret}).encode()

    def shown(self) -> dict[str, Any]:
        """For users; the secret is shown only once, elsewhere."""
        return self._fields()

    def disabled(self, reason: str) -> Self:
        return replace(self, state=DISABLED, reason=reason)

    def enabled(self) -> Self:
        return replace(self, state=ACTIVE, reason="")

    def message_id(self, partition: int, offset: int) -> str:
        """The same for every delivery of the record, and without a full stop."""
        return f"msg_{self.id}_{partition}_{offset}"

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SHOWN} | {"filter": self.filter.as_json()}


@dataclass(frozen=True, slots=True)
class Retry:
    """Redeliver the record."""

    delay_ms: int


class Settle:
    """Outcomes of a delivery other than a retry."""

    ACKNOWLEDGE = "acknowledge"
    REJECT = "reject"  # Make it a dead letter.
    DISABLE = "disable"  # The receiver wants no more; the record stays in the group.


def after_call(
    subscription: Subscription, answer: WebhookAnswer | None, delivery_count: int
) -> str | Retry:
    """What a receiver's answer means; None if there was no answer.

    Retry-After can lengthen the delay, but not shorten it.
    """
    if answer is not None and 200 <= answer.status < 300:
        return Settle.ACKNOWLEDGE
    if answer is not None and answer.status == 410:
        return Settle.DISABLE
    if delivery_count >= subscription.max_deliveries:
        return Settle.REJECT
    delay_ms = min(FIRST_RETRY_MS << min(delivery_count - 1, 30), RETRY_MS_MAX)
    if answer is not None and answer.retry_after_s is not None:
        delay_ms = max(delay_ms, answer.retry_after_s * 1000)
    return Retry(delay_ms)


def _text(data: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = data.get(name, default)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is missing" if value is None else f"{name} is text")
    return value


def _name(data: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = _text(data, name, default)
    if not _NAME.fullmatch(value) or value in (".", ".."):
        raise ValueError(f"{name} has letters, digits, '.', '_' and '-', at most 249")
    if value.startswith("__"):
        raise ValueError(f"{name} begins with '__', which is for the cluster itself")
    return value


def _count(data: Mapping[str, object], name: str, default: int, least: int, most: int) -> int:
    value = data.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is a number from {least} to {most}")
    return value
