"""Compression of a record batch.

The codecs are in `codecs`, whose libraries are imported when a compressed batch is first read or
written: a broker passes compressed batches through and usually never does.
"""

import enum

from ottla.records.batch import Buffer

DECOMPRESSED_BYTES_MAX = 128 * 1024 * 1024


class Compression(enum.IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(data: bytes, codec: int) -> bytes:
    if codec == Compression.NONE:
        return bytes(data)
    from ottla.records import codecs

    return codecs.compress(data, codec)


def decompress(data: Buffer, codec: int, limit: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """Raises CorruptBatch, BatchTooLarge beyond `limit` bytes, UnsupportedFormat without codec."""
    if codec == Compression.NONE:
        return data
    from ottla.records import codecs

    return codecs.decompress(data, codec, limit)
