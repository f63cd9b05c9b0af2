"""Reads the batches of segments from the beginning."""

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.records.batch import HEADER_SIZE, LENGTH_END, MAGIC, BatchHeader, read_header
from ottla.records.errors import CorruptBatch, RecordError
from ottla.storage.filesystem import File
from ottla.storage.producer_state import ProducerStateManager
from ottla.storage.reading import index_of
from ottla.storage.segment import Segment
from ottla.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)


class FoundBatch(NamedTuple):
    """A batch in a file, with a buffer that contains all of it."""

    position: int
    buffer: bytes
    buffer_position: int
    header: BatchHeader


def read_batches(
    file: File, position: int, end: int, read_bytes: int = 1 << 20
) -> Iterator[FoundBatch]:
    """All batches from `position` to `end`, in large reads; CorruptBatch where there is none."""
    read_bytes = max(read_bytes, HEADER_SIZE)
    chunk, chunk_start = b"", position
    while position < end:
        relative = position - chunk_start
        if relative + HEADER_SIZE > len(chunk):
            chunk, chunk_start, relative = file.read(position, read_bytes), position, 0
            if len(chunk) < HEADER_SIZE:
                raise CorruptBatch("the file ends inside a batch header")
        header = read_header(chunk, relative)
        size = header.size
        if header.magic != MAGIC or header.batch_length < HEADER_SIZE - LENGTH_END:
            raise CorruptBatch(f"magic {header.magic}, length {header.batch_length}")
        if position + size > end:
            raise CorruptBatch(f"a batch of {size} bytes, of which {end - position} are there")
        if relative + size > len(chunk):
            chunk, chunk_start = file.read(position, max(read_bytes, size)), position
            relative = 0
            if len(chunk) < size:
                raise CorruptBatch("the file ends inside a batch")
        yield FoundBatch(position, chunk, relative, header)
        position += size


def intact_batches(segment: Segment) -> Iterator[FoundBatch]:
    """All batches except those known to be damaged."""
    start = 0
    for damage in segment.damage:
        yield from read_batches(segment.file(), start, damage.position)
        start = damage.end
    yield from read_batches(segment.file(), start, segment.size)


def replay_producers(
    producers: ProducerStateManager, segments: Sequence[Segment], start: int, end: int
) -> None:
    """Replay the batches from offset `start` up to `end` into the producer state."""
    if start >= end:
        return
    for segment in segments[index_of(segments, start) :]:
        if segment.base_offset >= end:
            break
        try:
            for batch in intact_batches(segment):
                if start <= batch.header.base_offset < end:
                    producers.replay(batch.buffer, batch.buffer_position, batch.header)
        except RecordError as error:
            logger.error("%s: the producers of what follows are unknown: %s", segment.path, error)


def note_aborted(segment: Segment, transaction: AbortedTransaction | None) -> None:
    if transaction is not None:
        segment.transaction_index.append(transaction)
