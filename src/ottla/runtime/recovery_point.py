"""How far the metadata log is known to be on disk: the `recovery-point` file next to it.

Damage before the recovery point affects synced data, and aborts the start. Past it, damage is the
torn end of a write that was never acknowledged.

The file has two lines of equal length, each with a checksum. Every sync of the log overwrites one
of them in place, and the file itself is synced only occasionally: after a process crash the
recovery point is exact, after a power loss it may be some syncs behind. The other line is the last
synced one, so that a torn write never costs both.

The methods wait for the disk. Callers handle OSError.
"""

from typing import Final

from ottla.raft.log import OffsetAndEpoch
from ottla.records.crc import crc32c
from ottla.storage.filesystem import File, Filesystem

RECOVERY_POINT: Final = "recovery-point"
_LINE_BYTES: Final = 64
_LINES: Final = 2
_BYTES: Final = _LINES * _LINE_BYTES
_NOTES_PER_SYNC: Final = 16


class RecoveryPoint:
    def __init__(self, filesystem: Filesystem, directory: str) -> None:
        self._filesystem = filesystem
        self._path = f"{directory}/{RECOVERY_POINT}"
        self._file: File | None = None
        self._next_line = 0  # Invariant: the other line is synced.
        self._unsynced_count = 0
        # None if there is an unreadable file: then no damage may be truncated.
        self.reached: OffsetAndEpoch | None = self._read()

    def note(self, reached: OffsetAndEpoch) -> None:
        """Everything before it is on disk."""
        if reached != self.reached or self._file is None:
            self._write(reached)
            if self._unsynced_count >= _NOTES_PER_SYNC:
                self.sync()

    def go_back(self, reached: OffsetAndEpoch) -> None:
        """Call before the log is truncated; on disk when this returns."""
        for _ in range(_LINES):
            self._write(reached)
            self.sync()

    def sync(self) -> None:
        if self._unsynced_count:
            assert self._file is not None
            self._file.sync()
            self._unsynced_count = 0
            self._next_line = (self._next_line + 1) % _LINES

    def close(self) -> None:
        self.sync()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> OffsetAndEpoch | None:
        if not self._filesystem.exists(self._path):
            return _NOTHING
        content = self._filesystem.read_bytes(self._path)
        lines = [_parse(content[at : at + _LINE_BYTES]) for at in range(0, _BYTES, _LINE_BYTES)]
        known = [line for line in lines if line is not None]
        if not known:
            return None
        self._next_line = (lines.index(max(known)) + 1) % _LINES
        return max(known)

    def _write(self, reached: OffsetAndEpoch) -> None:
        if self._file is None:
            self._file = self._open(reached)
        self._file.write_at(_line(reached), self._next_line * _LINE_BYTES)
        self._unsynced_count += 1
        self.reached = reached

    def _open(self, reached: OffsetAndEpoch) -> File:
        filesystem = self._filesystem
        if not filesystem.exists(self._path) or filesystem.size(self._path) != _BYTES:
            filesystem.write_atomically(self._path, _line(reached) * _LINES)
        file = filesystem.open(self._path)
        file.sync()  # The previous process may have been killed before it did.
        return file


_NOTHING: Final = OffsetAndEpoch(0, 0)


def _line(reached: OffsetAndEpoch) -> bytes:
    text = f"offset {reached.offset} epoch {reached.epoch}"
    return f"{text} crc {crc32c(text.encode()):08x}".ljust(_LINE_BYTES - 1).encode() + b"\n"


def _parse(line: bytes) -> OffsetAndEpoch | None:
    try:
        words = line.decode().split()
        reached = OffsetAndEpoch(int(words[1]), int(words[3]))
    except (ValueError, IndexError):
        return None
    return reached if line == _line(reached) else None
