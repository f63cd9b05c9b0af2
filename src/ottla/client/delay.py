"""Delayed delivery to share groups, for topics with delivery.delay.enable=true."""

import datetime as dt
import time

DELIVER_AT_HEADER = "ottla-deliver-at"

GivenHeaders = dict[str, str | bytes | None] | list[tuple[str, str | bytes | None]]


def with_delay(headers: GivenHeaders | None, deliver_after: float | dt.timedelta) -> GivenHeaders:
    """`deliver_after` is in seconds from now."""
    if isinstance(deliver_after, dt.timedelta):
        deliver_after = deliver_after.total_seconds()
    if deliver_after < 0:
        raise ValueError(f"deliver_after is {deliver_after}, which is in the past")
    deliver_at_ms = time.time_ns() // 1_000_000 + round(deliver_after * 1000)
    given = headers.items() if isinstance(headers, dict) else headers or ()
    return [*given, (DELIVER_AT_HEADER, str(deliver_at_ms).encode())]
