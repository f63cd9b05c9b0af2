"""Records that a share group has set aside, each with the time before which it is not delivered.

A million of them fit into some twenty megabytes: offsets, times and delivery counts are in arrays,
divided into chunks sorted by offset, so that a change moves one chunk and nothing is ever scanned.
The chunk with the next due time is found through a heap, which exists only where times are asked
for: the share coordinator stores parked records, and only leaders deliver them.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

CHUNK_RECORDS: Final = 512
PAGE_RECORDS: Final = 8_192  # Records written or sent at a time.
ARCHIVING_DUE_MS: Final = -1  # Instead of a time: its dead letter must be written.

_NOT_TIMED: Final = -2

_COUNT = struct.Struct(">i")
_RANGE = struct.Struct(">qq")
_IS_LITTLE = sys.byteorder == "little"


class ParkedRecord(NamedTuple):
    offset: int
    due_ms: int  # Not delivered before.
    delivery_count: int


class ParkedChange(NamedTuple):
    """First removes ranges of offsets, then sets records; sorted columns of equal length."""

    removed: tuple[tuple[int, int], ...]
    offsets: "array[int]"
    dues_ms: "array[int]"
    delivery_counts: "array[int]"

    @classmethod
    def of(
        cls, records: Iterable[ParkedRecord], removed: Iterable[tuple[int, int]] = ()
    ) -> "ParkedChange":
        found = list(records)
        return cls(
            tuple(removed),
            array("q", [record[0] for record in found]),
            array("q", [record[1] for record in found]),
            array("h", [record[2] for record in found]),
        )

    def records(self) -> Iterator[ParkedRecord]:
        return map(ParkedRecord, self.offsets, self.dues_ms, self.delivery_counts)

    def encode(self) -> bytes:
        """Counted ranges, the record count, and the columns; all numbers big-endian."""
        parts = [_COUNT.pack(len(self.removed))]
        parts.extend(_RANGE.pack(*each) for each in self.removed)
        parts.append(_COUNT.pack(len(self.offsets)))
        parts.extend(map(_big_endian, self[1:]))
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> "ParkedChange":
        """ValueError if the data is invalid."""
        try:
            (removed_count,) = _COUNT.unpack_from(data)
            position = _COUNT.size + removed_count * _RANGE.size
            removed = tuple(_RANGE.iter_unpack(data[_COUNT.size : position]))
            (count,) = _COUNT.unpack_from(data, position)
        except struct.error as error:
            raise ValueError(str(error)) from None
        position += _COUNT.size
        columns = []
        for kind in "qqh":
            column = array(kind)
            size = count * column.itemsize
            column.frombytes(data[position : position + size])
            if _IS_LITTLE:
                column.byteswap()
            columns.append(column)
            position += size
        if position != len(data) or removed_count < 0 or count < 0:
            raise ValueError(f"{len(data)} bytes of parked records in place of {position}")
        return cls(removed, *columns)


NO_CHANGE: Final = ParkedChange.of(())


def _big_endian(column: "array[int]") -> bytes:
    if _IS_LITTLE:
        column = column[:]
        column.byteswap()
    return column.tobytes()


class _Chunk:
    __slots__ = ("counts", "dues", "min_due", "offsets", "pushed")

    def __init__(self, offsets: "array[int]", dues: "array[int]", counts: "array[int]") -> None:
        self.offsets = offsets  # Never empty while in use.
        self.dues = dues
        self.counts = counts
        self.min_due = _NOT_TIMED
        self.pushed = -1  # Identifies its current heap entry; others are outdated.


class Parked:
    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._last_offsets: list[int] = []  # Of the chunks.
        self._count = 0
        self._heap: list[tuple[int, int, _Chunk]] | None = None
        self._pushed = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, offset: int) -> bool:
        return self.get(offset) is not None

    def get(self, offset: int) -> ParkedRecord | None:
        _, chunk, index = self._find(offset)
        if chunk is None or chunk.offsets[index] != offset:
            return None
        return ParkedRecord(offset, chunk.dues[index], chunk.counts[index])

    def has_archiving(self) -> bool:
        return any(ARCHIVING_DUE_MS in chunk.dues for chunk in self._chunks)

    def records(self) -> Iterator[ParkedRecord]:
        for chunk in self._chunks:
            yield from map(ParkedRecord, chunk.offsets, chunk.dues, chunk.counts)

    def page(self, first_offset: int, count: int = PAGE_RECORDS) -> ParkedChange:
        """About `count` records from an offset on, in whole chunks, as a change that sets them."""
        columns = (array("q"), array("q"), array("h"))
        chunk_index = bisect_left(self._last_offsets, first_offset)
        for chunk in self._chunks[chunk_index:]:
            start = bisect_left(chunk.offsets, first_offset)
            columns[0].extend(chunk.offsets[start:])
            columns[1].extend(chunk.dues[start:])
            columns[2].extend(chunk.counts[start:])
            if len(columns[0]) >= count:
                break
        return ParkedChange((), *columns)

    def pages(self) -> Iterator[ParkedChange]:
        """Everything, as changes that each replace a range of offsets."""
        first = 0
        while (page := self.page(first)).offsets:
            last = page.offsets[-1]
            yield page._replace(removed=((first, last),))
            first = last + 1

    # Changes.

    def apply(self, change: ParkedChange) -> None:
        for first, last in change.removed:
            self.remove_range(first, last)
        _, offsets, dues, counts = change
        if offsets and (not self._last_offsets or offsets[0] > self._last_offsets[-1]):
            for start in range(0, len(offsets), CHUNK_RECORDS):
                part = slice(start, start + CHUNK_RECORDS)
                self._insert_chunk(
                    len(self._chunks), _Chunk(offsets[part], dues[part], counts[part])
                )
            self._count += len(offsets)
        else:
            for offset, due_ms, count in zip(offsets, dues, counts, strict=True):
                self.set(offset, due_ms, count)

    def set(self, offset: int, due_ms: int, delivery_count: int) -> None:
        chunk_index, chunk, index = self._find(offset)
        if chunk is None:
            self._append(offset, due_ms, delivery_count)
            return
        if chunk.offsets[index] == offset:
            chunk.dues[index] = due_ms
            chunk.counts[index] = delivery_count
        else:
            chunk.offsets.insert(index, offset)
            chunk.dues.insert(index, due_ms)
            chunk.counts.insert(index, delivery_count)
            self._count += 1
            if len(chunk.offsets) > CHUNK_RECORDS:
                self._split(chunk_index, chunk)
        self._changed(chunk)

    def _append(self, offset: int, due_ms: int, delivery_count: int) -> None:
        self._count += 1
        last = self._chunks[-1] if self._chunks else None
        if last is None or len(last.offsets) >= CHUNK_RECORDS:
            columns = array("q", [offset]), array("q", [due_ms]), array("h", [delivery_count])
            self._insert_chunk(len(self._chunks), _Chunk(*columns))
            return
        last.offsets.append(offset)
        last.dues.append(due_ms)
        last.counts.append(delivery_count)
        self._last_offsets[-1] = offset
        self._changed(last)

    def _split(self, chunk_index: int, chunk: _Chunk) -> None:
        half = len(chunk.offsets) // 2
        rest = _Chunk(chunk.offsets[half:], chunk.dues[half:], chunk.counts[half:])
        del chunk.offsets[half:], chunk.dues[half:], chunk.counts[half:]
        self._last_offsets[chunk_index] = chunk.offsets[-1]
        self._insert_chunk(chunk_index + 1, rest)

    def _insert_chunk(self, chunk_index: int, chunk: _Chunk) -> None:
        self._chunks.insert(chunk_index, chunk)
        self._last_offsets.insert(chunk_index, chunk.offsets[-1])
        self._changed(chunk)

    def remove(self, offset: int) -> ParkedRecord | None:
        found = self.get(offset)
        if found is not None:
            self.remove_range(offset, offset)
        return found

    def remove_range(self, first_offset: int, last_offset: int) -> int:
        """Returns how many there were."""
        before = self._count
        chunk_index = bisect_left(self._last_offsets, first_offset)
        while (
            chunk_index < len(self._chunks) and self._chunks[chunk_index].offsets[0] <= last_offset
        ):
            chunk = self._chunks[chunk_index]
            start = bisect_left(chunk.offsets, first_offset)
            end = bisect_right(chunk.offsets, last_offset)
            self._count -= end - start
            if end - start == len(chunk.offsets):
                chunk.pushed = -1
                del self._chunks[chunk_index], self._last_offsets[chunk_index]
                continue
            del chunk.offsets[start:end], chunk.dues[start:end], chunk.counts[start:end]
            self._last_offsets[chunk_index] = chunk.offsets[-1]
            self._changed(chunk)
            chunk_index += 1
        return before - self._count

    def _find(self, offset: int) -> tuple[int, _Chunk | None, int]:
        """The chunk for the offset, and the index in it; None past the last chunk."""
        chunk_index = bisect_left(self._last_offsets, offset)
        if chunk_index == len(self._chunks):
            return chunk_index, None, 0
        chunk = self._chunks[chunk_index]
        return chunk_index, chunk, bisect_left(chunk.offsets, offset)

    # Times.

    def next_due_ms(self) -> int | None:
        heap = self._times()
        while heap and heap[0][1] != heap[0][2].pushed:
            heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now_ms: int, count: int) -> list[int]:
        """Offsets of up to `count` records that are due, roughly sorted by time."""
        heap = self._times()
        found: list[int] = []
        looked_at = []
        while len(found) < count and (due_ms := self.next_due_ms()) is not None:
            if due_ms > now_ms:
                break
            entry = heappop(heap)
            looked_at.append(entry)
            chunk = entry[2]
            for offset, due_ms in zip(chunk.offsets, chunk.dues, strict=True):
                if due_ms <= now_ms:
                    found.append(offset)
        for entry in looked_at:
            heappush(heap, entry)
        return found[:count]

    def _times(self) -> list[tuple[int, int, _Chunk]]:
        if self._heap is None or len(self._heap) > 2 * len(self._chunks) + CHUNK_RECORDS:
            for index, chunk in enumerate(self._chunks):
                chunk.min_due, chunk.pushed = min(chunk.dues), index
            self._heap = [(each.min_due, each.pushed, each) for each in self._chunks]
            self._pushed = len(self._heap)
            heapify(self._heap)
        return self._heap

    def _changed(self, chunk: _Chunk) -> None:
        if self._heap is None:
            return
        least = min(chunk.dues)
        if least != chunk.min_due:
            chunk.min_due, chunk.pushed = least, self._pushed
            heappush(self._heap, (least, self._pushed, chunk))
            self._pushed += 1
