"""The result of an append."""

from typing import Final, NamedTuple

NO_APPEND_TIME: Final = -1


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    append_time_ms: int  # NO_APPEND_TIME when the records keep their producer's time.
    duplicate: bool  # The batch had been appended before; the offsets are the existing ones.
