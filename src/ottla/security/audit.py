"""The audit trail: logins, refusals and changes, as events for a log.

It cannot be used to fill a disk: an event that repeats within `REPEATS_MS` is counted instead of
written, and each kind has a rate limit. The next event of a kind reports how many were omitted, and
`settle`, to be called periodically, reports the remaining ones.
"""

import enum
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ottla.security.principal import Principal
from ottla.security.rates import TokenBucket, Windows

REPEATS_MS: Final = 10_000.0
EVENTS_REMEMBERED_MAX: Final = 1_000  # Events whose repetitions are counted.
RATE: Final = 20.0  # Events of one kind per second, with bursts of ten times as many.
CHANGE_RATE: Final = 200.0
TEXT_CHARACTERS_MAX: Final = 200
NAMES_MAX: Final = 20  # Names of changed objects per request.

_BURST: Final = Windows(10, 1_000)
_PLAIN: Final = re.compile(r"[\w.:/@*+-]+", re.ASCII)

Event = dict[str, Any]


class Kind(enum.Enum):
    LOGIN = "login"
    LOGIN_REFUSED = "login_refused"
    ACCESS_REFUSED = "access_refused"
    CHANGE = "change"


class Audit:
    """`write` is called with each event."""

    def __init__(self, write: Callable[[Event], None], monotonic_ms: Callable[[], float]) -> None:
        self._write = write
        self._monotonic_ms = monotonic_ms
        self._buckets = {kind: TokenBucket(_BURST) for kind in Kind}
        self._left_out = dict.fromkeys(Kind, 0)
        self._seen: dict[tuple[Kind, str], int] = {}  # Repetitions since then.
        self._seen_since_ms = monotonic_ms()

    def tell(
        self, kind: Kind, principal: Principal | None, host: str, **details: str | list[str]
    ) -> None:
        event: Event = {"event": kind.value}
        if principal is not None:
            event["principal"] = _short(str(principal))
        event["host"] = host
        event.update((key, _shortened(value)) for key, value in details.items() if value)
        now_ms = self._monotonic_ms()
        if now_ms - self._seen_since_ms >= REPEATS_MS:
            self.settle()
        if kind is not Kind.CHANGE and self._is_repeated(kind, event):
            return
        rate = CHANGE_RATE if kind is Kind.CHANGE else RATE
        bucket = self._buckets[kind]
        if bucket.debt_ms(rate, now_ms):
            self._left_out[kind] += 1
            return
        bucket.take(1, rate, now_ms)
        if self._left_out[kind]:
            event["left_out_before"] = self._left_out[kind]
            self._left_out[kind] = 0
        self._write(event)

    def settle(self) -> None:
        """Report the omissions that no event has reported."""
        repeated = dict.fromkeys(Kind, 0)
        for (kind, _), count in self._seen.items():
            repeated[kind] += count
        self._seen.clear()
        self._seen_since_ms = self._monotonic_ms()
        for kind in Kind:
            if repeated[kind] or self._left_out[kind]:
                summary: Event = {"event": "summary", "of": kind.value, "repeated": repeated[kind]}
                self._write({**summary, "left_out": self._left_out[kind]})
                self._left_out[kind] = 0

    def _is_repeated(self, kind: Kind, event: Event) -> bool:
        key = (kind, repr(event))
        if key in self._seen:
            self._seen[key] += 1
            return True
        if len(self._seen) < EVENTS_REMEMBERED_MAX:
            self._seen[key] = 0
        return False


def event_text(event: Mapping[str, object]) -> str:
    """`login principal=User:alice host=10.0.0.1`: one line, whatever names clients choose."""
    rest = (f"{key}={_quoted(value)}" for key, value in event.items() if key != "event")
    return " ".join((str(event["event"]), *rest))


def _quoted(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _shortened(value: str | list[str]) -> str | list[str]:
    if isinstance(value, str):
        return _short(value)
    names = [_short(name) for name in value[:NAMES_MAX]]
    if len(value) > NAMES_MAX:
        names.append(f"and {len(value) - NAMES_MAX} more")
    return names


def _short(text: str) -> str:
    if len(text) <= TEXT_CHARACTERS_MAX:
        return text
    return text[:TEXT_CHARACTERS_MAX] + "..."
