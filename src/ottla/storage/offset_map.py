"""The last offset of each key in the part of a log that is being compacted, in bounded memory."""

from hashlib import blake2b

DIGEST_SIZE = 16
ENTRY_BYTES = 192  # Upper bound for a key: its slot in the table, its digest, its offset.
NO_OFFSET = -1


class OffsetMap:
    """Keys shorter than a digest are stored as they are, longer ones as their digest."""

    __slots__ = ("_entries_max", "_offsets", "latest_offset")

    def __init__(self, memory_bytes: int) -> None:
        self._entries_max = max(memory_bytes // ENTRY_BYTES, 1)
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = NO_OFFSET  # The log is mapped up to here.

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self._entries_max

    def put(self, key: bytes, offset: int) -> None:
        """Call in increasing order of offsets: the last one stays."""
        if len(key) >= DIGEST_SIZE:
            key = blake2b(key, digest_size=DIGEST_SIZE).digest()
        self._offsets[key] = offset

    def get(self, key: bytes) -> int:
        """NO_OFFSET for an unknown key."""
        if len(key) >= DIGEST_SIZE:
            key = blake2b(key, digest_size=DIGEST_SIZE).digest()
        return self._offsets.get(key, NO_OFFSET)
