"""Walks the batches of a segment file by header, with few reads and few checks."""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.records.batch import HEADER_SIZE, LENGTH_END, MAGIC
from ottla.storage.errors import CorruptLog, NotCached
from ottla.storage.filesystem import File

_FIELDS = struct.Struct(">qi4xb6xi8xq")
_READ_BYTES = 8192  # Two index intervals: one read takes a lookup to its batch.


class Batch(NamedTuple):
    """The header fields that a walk yields."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int

    @property
    def end(self) -> int:
        return self.position + self.size


def walk(
    file: File, position: int, end: int, next_offset: int = 0, *, cached_only: bool = False
) -> Iterator[Batch]:
    """Yield the batches between `position` and `end`, both of which are batch boundaries.

    No batch has an offset before `next_offset`.

    Raises CorruptLog for bytes that are not a batch or a batch whose offset is too low, and
    NotCached if `cached_only` and the read would wait for the disk.
    """
    read: Callable[[int, int], bytes | None] = file.read_cached if cached_only else file.read
    unpack = _FIELDS.unpack_from
    new = tuple.__new__
    chunk, chunk_start = b"", position
    while position < end:
        relative = position - chunk_start
        if relative + HEADER_SIZE > len(chunk):
            more = read(position, min(_READ_BYTES, end - position))
            if more is None:
                raise NotCached
            chunk, chunk_start, relative = more, position, 0
            if len(chunk) < HEADER_SIZE:
                raise CorruptLog(file.path, position, -1, "the file ends inside a batch header")
        base_offset, length, magic, last_offset_delta, max_timestamp = unpack(chunk, relative)
        size = length + LENGTH_END
        if size < HEADER_SIZE or last_offset_delta < 0 or position + size > end or magic != MAGIC:
            raise CorruptLog(file.path, position, base_offset, f"a batch of {size} bytes")
        if base_offset < next_offset:
            raise CorruptLog(file.path, position, base_offset, f"{next_offset} is expected")
        last_offset = base_offset + last_offset_delta
        yield new(Batch, (position, size, base_offset, last_offset, max_timestamp))
        next_offset = last_offset + 1
        position += size
