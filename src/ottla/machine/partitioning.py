"""The partition of an internal topic that hosts the coordinator of a group or a transaction."""

from collections.abc import Iterator
from functools import lru_cache

_CACHED_CHARACTERS_MAX = 256  # Longer keys are not cached.


def partition_for(key: str, partition_count: int) -> int:
    """Uses Java's String.hashCode, so that Kafka's tools look in the same place."""
    cached = len(key) <= _CACHED_CHARACTERS_MAX
    code = _cached_hash_code(key) if cached else _absolute_hash_code(key)
    return code % partition_count


def _absolute_hash_code(key: str) -> int:
    code = 0
    for unit in _utf16_units(key):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    # The absolute value of the smallest integer does not fit; Kafka uses 0 for it.
    return 0 if signed == -(1 << 31) else abs(signed)


_cached_hash_code = lru_cache(maxsize=10_000)(_absolute_hash_code)


def _utf16_units(text: str) -> Iterator[int]:
    encoded = text.encode("utf-16-be", "surrogatepass")
    return (encoded[index] << 8 | encoded[index + 1] for index in range(0, len(encoded), 2))
