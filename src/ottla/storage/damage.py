"""Finds batches that were changed after they were written.

A checksum covers a batch from its attributes on. The fields before it are checked against the
neighbours: offsets increase and stay within the segment, and leader epochs never decrease. A base
offset that was raised shows at the next batch, which then comes too early.

After damage, the scan looks for the next intact batch, so that one flipped bit costs one batch and
not everything after it.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from ottla.records.batch import CRC_START, HEADER_SIZE, LENGTH_END, MAGIC
from ottla.records.crc import crc32c
from ottla.storage.filesystem import File

# Base offset, length, leader epoch, magic, crc, last offset delta, max timestamp.
_FIELDS = struct.Struct(">qiibI2xi8xq")
_MAGIC_POSITION = 16
_READ_BYTES = 1 << 18

EPOCH_MAX = 2**31 - 1


class Damage(NamedTuple):
    """Bytes of a segment that are not batches of its log, and the offsets they stood for."""

    path: str
    position: int
    end: int
    first_offset: int
    next_offset: int
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.path} is damaged from position {self.position} to {self.end}, "
            f"offsets {self.first_offset} to {self.next_offset - 1}: {self.reason}"
        )


class IntactBatch(NamedTuple):
    position: int
    last_offset: int
    max_timestamp: int


class _Accepted(NamedTuple):
    """The last batch that seemed intact, with the state before it."""

    position: int
    floor: int
    epoch: int
    last_offset_delta: int


class Examination:
    """Examines the batches in part of a segment, piece by piece."""

    def __init__(
        self,
        file: File,
        position: int,
        end: int,
        *,
        floor: int,
        ceiling: int,
        on_intact: Callable[[IntactBatch], object] | None = None,
        epoch_max: int = EPOCH_MAX,
    ) -> None:
        """All offsets between `position` and `end` are at least `floor` and less than `ceiling`.

        `epoch_max` is the latest leader epoch that wrote something, if known. It matters for the
        last batch, which has no successor to check it against.
        """
        self.position = position
        self.damage: list[Damage] = []
        self.next_offset = floor  # A lower bound: no later batch has a smaller offset.
        self._file = file
        self._end = end
        self._ceiling = ceiling
        self.epoch = -1  # The highest so far.
        self._epoch_max = epoch_max
        self._last: _Accepted | None = None
        self._on_intact = on_intact

    @property
    def is_done(self) -> bool:
        return self.position >= self._end

    def advance(self, bytes_count: int) -> int:
        """Examine about `bytes_count` more bytes; returns how many were read."""
        start = self.position
        while not self.is_done and self.position - start < bytes_count:
            size = min(_READ_BYTES, bytes_count - (self.position - start) + HEADER_SIZE)
            self._take(self._file.read(self.position, min(size, self._end - self.position)))
        return self.position - start

    def _take(self, chunk: bytes) -> None:
        """Examine the batches that begin in the chunk: at least one batch, or some damage."""
        view = memoryview(chunk)
        chunk_start = self.position
        while not self.is_done:
            relative = self.position - chunk_start
            if relative and relative + HEADER_SIZE > len(chunk):
                return
            if len(chunk) - relative < HEADER_SIZE:
                self._on_damage("the file ends inside a batch header")
                return
            base, length, epoch, magic, crc, delta, timestamp = _FIELDS.unpack_from(chunk, relative)
            size = length + LENGTH_END
            if relative and relative + size > len(chunk) and self.position + size <= self._end:
                return
            reason = self._structural_fault(self.position, size, magic, delta)
            if reason is None:
                body = view[relative + CRC_START : relative + size]
                actual = self._checksum(self.position, size, body)
                if actual != crc:
                    reason = f"the checksum is {actual:#010x}, not {crc:#010x} as the header says"
            if reason is None:
                reason = self._misplacement(
                    base, base + delta + 1, epoch, self.position + size == self._end
                )
                if reason is not None:
                    if self._suspect_last(base, epoch):
                        continue  # The batch before was at fault; examine this one again.
                    self._on_damage(reason)
                    return
            else:
                self._on_damage(reason)
                return
            if self._on_intact is not None:
                self._on_intact(IntactBatch(self.position, base + delta, timestamp))
            self._last = _Accepted(self.position, self.next_offset, self.epoch, delta)
            self.next_offset = base + delta + 1
            self.epoch = max(self.epoch, epoch)
            self.position += size

    def _structural_fault(self, position: int, size: int, magic: int, delta: int) -> str | None:
        if magic != MAGIC or size < HEADER_SIZE or delta < 0:
            return f"magic {magic}, size {size}, last offset delta {delta}"
        if position + size > self._end:
            return f"a batch of {size} bytes, of which {self._end - position} are there"
        return None

    def _misplacement(
        self, base_offset: int, next_offset: int, epoch: int, is_last: bool
    ) -> str | None:
        if base_offset < self.next_offset:
            return f"offset {base_offset} comes where {self.next_offset} is expected"
        if next_offset > self._ceiling:
            return f"offset {next_offset - 1} comes before {self._ceiling}"
        if -1 < epoch < self.epoch or (is_last and epoch > self._epoch_max):
            return f"leader epoch {epoch} comes after {self.epoch}"
        return None

    def _checksum(self, position: int, size: int, body: memoryview) -> int:
        """The checksum of a batch that may be longer than what has been read."""
        checksum = int(crc32c(body))
        done = CRC_START + len(body)
        while done < size:
            piece = self._file.read(position + done, min(_READ_BYTES, size - done))
            if not piece:
                break
            checksum = int(crc32c(piece, checksum))
            done += len(piece)
        return checksum

    def _suspect_last(self, base_offset: int, epoch: int) -> bool:
        """Whether the batch before is damaged and this one, which does not follow it, is intact.

        If that is undecidable, `_on_damage` gives up both.
        """
        last = self._last
        if last is None or last.floor + last.last_offset_delta + 1 != base_offset:
            return False
        if -1 < epoch < last.epoch:
            return False
        self.damage.append(
            Damage(
                self._file.path,
                last.position,
                self.position,
                last.floor,
                base_offset,
                f"offset {base_offset} does not follow its offset or leader epoch",
            )
        )
        self.next_offset, self.epoch, self._last = base_offset, last.epoch, None
        return True

    def _on_damage(self, reason: str) -> None:
        """Skip to the next intact batch."""
        position, floor = self.position, self.next_offset
        header = self._file.read(position, HEADER_SIZE)
        last = self._last
        if last is not None and len(header) == HEADER_SIZE and self._is_whole(position, header):
            base, _, _, _, _, delta, _ = _FIELDS.unpack_from(header)
            if last.floor <= base and base + delta < self._ceiling:
                # One of the two is wrong, and there is no way to tell which.
                position, floor, self.epoch = last.position, last.floor, last.epoch
        end, next_offset = self._find_intact(self.position, floor)
        self.damage.append(Damage(self._file.path, position, end, floor, next_offset, reason))
        self.position, self.next_offset, self._last = end, next_offset, None

    def _is_whole(self, position: int, header: bytes) -> bool:
        _, length, _, magic, crc, delta, _ = _FIELDS.unpack_from(header)
        size = length + LENGTH_END
        return (
            self._structural_fault(position, size, magic, delta) is None
            and self._checksum(position, size, memoryview(header)[CRC_START:size]) == crc
        )

    def _find_intact(self, position: int, floor: int) -> tuple[int, int]:
        """The position and offset of the first intact batch from `position` on, or the end.

        The place where the damaged batch claims to end is tried first, since its records may look
        like batches.
        """
        header = self._file.read(position, HEADER_SIZE)
        if len(header) == HEADER_SIZE:
            size = int.from_bytes(header[8:LENGTH_END], "big", signed=True) + LENGTH_END
            following = self._file.read(position + size, HEADER_SIZE) if size > 0 else b""
            if len(following) == HEADER_SIZE and self._is_intact(position + size, following, floor):
                return position + size, _FIELDS.unpack_from(following)[0]
        position += 1
        while position + HEADER_SIZE <= self._end:
            chunk = self._file.read(position, min(_READ_BYTES, self._end - position))
            magic_at = chunk.find(MAGIC, _MAGIC_POSITION)
            while _MAGIC_POSITION <= magic_at <= len(chunk) - HEADER_SIZE + _MAGIC_POSITION:
                start = magic_at - _MAGIC_POSITION
                header = chunk[start : start + HEADER_SIZE]
                if self._is_intact(position + start, header, floor):
                    return position + start, _FIELDS.unpack_from(header)[0]
                magic_at = chunk.find(MAGIC, magic_at + 1)
            position += max(len(chunk) - HEADER_SIZE + 1, 1)
        return self._end, self._ceiling

    def _is_intact(self, position: int, header: bytes, floor: int) -> bool:
        base, _, epoch, _, _, delta, _ = _FIELDS.unpack_from(header)
        return (
            floor < base <= base + delta < self._ceiling
            and (epoch >= self.epoch or epoch == -1)
            and self._is_whole(position, header)
        )
