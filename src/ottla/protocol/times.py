"""Durations in the representation of the protocol's entities."""

from datetime import timedelta
from typing import Final

from kio.static.primitive import i32Timedelta

_MILLISECOND: Final = timedelta(milliseconds=1)

NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))


def milliseconds(count: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=count))


def in_milliseconds(duration: timedelta) -> int:
    return duration // _MILLISECOND
