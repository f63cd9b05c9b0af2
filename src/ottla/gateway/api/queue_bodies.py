"""Bodies of queue requests, read from JSON and checked. Times are in seconds."""

from collections.abc import Mapping
from typing import Any, Final

from ottla.gateway.core.errors import Invalid
from ottla.protocol.messages.delivery_acknowledge import DELAY_MS_MAX, LOCK_MS_MAX

RECEIVE_MAX: Final = 1_000
WAIT_MS_MAX: Final = 60_000
HANDLES_MAX: Final = 10_000


def text_of(body: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = body.get(name, default)
    if not isinstance(value, str) or not value:
        raise Invalid(f"`{name}` must be a text that is not empty")
    return value


def count_of(body: Mapping[str, Any], name: str, default: int, most: int, *, least: int = 1) -> int:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Invalid(f"`{name}` must be a whole number from {least} to {most}")
    return value


def wait_ms_of(body: Mapping[str, Any]) -> int:
    return _ms_of(body, "wait", 0, WAIT_MS_MAX) or 0


def lock_ms_of(body: Mapping[str, Any]) -> int | None:
    """None: the group's default."""
    return _ms_of(body, "lock", 1, LOCK_MS_MAX)


def delay_ms_of(body: Mapping[str, Any]) -> int | None:
    """None: as the group's back-off policy says."""
    return _ms_of(body, "delay", 0, DELAY_MS_MAX)


def handles_of(body: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The handles, and whether they came as a batch: `deliveries`, or a single `delivery`."""
    if ("delivery" in body) == ("deliveries" in body):
        raise Invalid("name either one `delivery` or a list of `deliveries`")
    if "delivery" in body:
        return [text_of(body, "delivery")], False
    handles = body["deliveries"]
    if not isinstance(handles, list) or not all(isinstance(each, str) for each in handles):
        raise Invalid("`deliveries` must be a list of texts")
    if len(handles) > HANDLES_MAX:
        raise Invalid(f"`deliveries` has more than {HANDLES_MAX} items")
    return handles, True


def _ms_of(body: Mapping[str, Any], name: str, least_ms: int, most_ms: int) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"`{name}` must be a number of seconds")
    if not least_ms <= value * 1000 <= most_ms:
        raise Invalid(f"`{name}` must be from {least_ms / 1000:g} to {most_ms / 1000:g} seconds")
    return round(value * 1000)
