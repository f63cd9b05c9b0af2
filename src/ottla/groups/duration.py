"""Milliseconds, and kio's way to say them."""

from datetime import timedelta
from typing import Final

from kio.static.primitive import i32Timedelta

_MILLISECOND: Final = timedelta(milliseconds=1)

NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))


def in_ms(duration: timedelta) -> int:
    return duration // _MILLISECOND


def of_ms(milliseconds: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=milliseconds))
