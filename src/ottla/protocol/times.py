"""Durations as the protocol's entities hold them."""

from datetime import timedelta
from typing import Final

from kio.static.primitive import i32Timedelta

NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))


def milliseconds(count: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=count))
