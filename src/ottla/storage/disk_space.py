"""When the disk of a log directory counts as full, and the space reserved for metadata.

    has room  --a write finds no space, or hardly any is left-->  full
    full      --enough space is free, after a while-->            has room

The reserve is a file that exists to be removed. When the disk is full it is removed, and no records
are appended: the node can still learn who leads, and an operator can delete topics and records to
make room. Once there is room, the reserve is created again.

A limit that the volume does not report (a quota) is found by trying, less often each time the
directory soon fills up again.
"""

import logging
from typing import Final

from ottla.storage.filesystem import Filesystem

logger = logging.getLogger(__name__)

RESERVE_FILE: Final = "space.reserve"
RESERVE_BYTES: Final = 8 << 20
LEAST_BYTES: Final = 1 << 20  # The disk is full below this much free space.
ROOM_BYTES: Final = 64 << 20  # It stops being full with this much free in addition to the reserve,
ROOM_DIVISOR: Final = 64  # or with this fraction of the volume, if that is less.
FULL_FIRST_MS: Final = 1_000
FULL_MAX_MS: Final = 60_000

_CHUNK: Final = bytes(1 << 20)


class DiskSpace:
    def __init__(self, filesystem: Filesystem, directory: str, *, reserve_bytes: int = 0) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._reserve_path = f"{directory}/{RESERVE_FILE}"
        self._reserve_bytes = reserve_bytes
        self._has_reserve = False  # Stays true once the reserve was given up.
        self._full_until_ms: float | None = None  # At least; set at the first check.
        self._full_for_ms = FULL_FIRST_MS
        self._settled_at_ms = 0.0  # After this time with room, the back-off starts over.

    def look(self, now_ms: float, *, is_full: bool) -> bool:
        """Whether the disk is full now; called periodically, in one thread. Raises disk errors."""
        total_bytes, free_bytes = self._filesystem.space(self._directory)
        is_known = free_bytes >= 0
        room_bytes = _room(total_bytes) + self._reserve_bytes
        if not is_full:
            if now_ms > self._settled_at_ms:
                self._full_for_ms = FULL_FIRST_MS
            if is_known and free_bytes >= room_bytes:
                self._keep_reserve()
            return is_known and free_bytes < min(LEAST_BYTES, _room(total_bytes))
        if self._full_until_ms is None:
            self._full_until_ms = now_ms + self._full_for_ms
        if now_ms < self._full_until_ms or (is_known and free_bytes < room_bytes):
            return True
        self._full_until_ms = None
        self._full_for_ms = min(2 * self._full_for_ms, FULL_MAX_MS)
        self._settled_at_ms = now_ms + FULL_MAX_MS
        return False

    def give_up_reserve(self) -> bool:
        """Free the reserve for metadata; False if there never was one. Callable from any thread."""
        try:
            if self._has_reserve and self._filesystem.exists(self._reserve_path):
                self._filesystem.remove(self._reserve_path)
        except OSError as error:
            logger.warning("cannot remove %s: %s", self._reserve_path, error)
        return self._has_reserve

    def _keep_reserve(self) -> None:
        if not self._reserve_bytes:
            return
        self._has_reserve = True
        if self._filesystem.exists(self._reserve_path):
            return
        file = self._filesystem.open(self._reserve_path, create=True)
        try:
            while file.size < self._reserve_bytes:
                file.append(_CHUNK)
        finally:
            file.close()


def _room(total_bytes: int) -> int:
    return min(ROOM_BYTES, total_bytes // ROOM_DIVISOR)
