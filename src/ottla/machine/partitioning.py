"""The partition of an internal topic where the coordinator of a group or a transaction lives."""

from collections.abc import Iterator


def partition_for(key: str, partition_count: int) -> int:
    """Java's String.hashCode decides, so that Kafka's tools look in the same place."""
    code = 0
    for unit in _utf16_units(key):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    # The absolute value of the least integer does not fit; Kafka takes 0 for it.
    return (0 if signed == -(1 << 31) else abs(signed)) % partition_count


def _utf16_units(text: str) -> Iterator[int]:
    encoded = text.encode("utf-16-be", "surrogatepass")
    return (encoded[index] << 8 | encoded[index + 1] for index in range(0, len(encoded), 2))
