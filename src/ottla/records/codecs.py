"""The four codecs of a record batch, in the framing that Kafka writes.

snappy  written in the framing of the xerial library, read in that and raw
lz4     an LZ4 frame of independent blocks, which is all that Kafka's Java client reads

Output is bounded: data that would decompress beyond the limit is rejected before it is held.
"""

import struct
import zlib
from collections.abc import Callable

import cramjam
import zstandard

from ottla.records.batch import Buffer
from ottla.records.compression import Compression
from ottla.records.errors import BatchTooLarge, CorruptBatch, UnsupportedFormat

_GZIP_WINDOW = 31  # In zlib's terms: a gzip header, and the largest window.

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_BIG_ENDIAN_SIZE = struct.Struct(">i")

# Version 1, independent blocks of up to 64 KB, no checksums; last byte: the header's checksum.
_LZ4_HEADER = bytes.fromhex("04224d18604082")
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED_FLAG = 0x80000000
_LZ4_END = bytes(4)
_LZ4_RATIO_MAX = 255
_LZ4_BLOCK_CHECKSUM = 0x10
_LZ4_CONTENT_SIZE = 0x08
_LZ4_CONTENT_CHECKSUM = 0x04
_LITTLE_ENDIAN_SIZE = struct.Struct("<I")


def compress(data: bytes, codec: int) -> bytes:
    compressor = _COMPRESSORS.get(codec)
    if compressor is None:
        raise UnsupportedFormat(f"there is no compression type {codec}")
    return compressor(data)


def decompress(data: Buffer, codec: int, limit: int) -> Buffer:
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise UnsupportedFormat(f"there is no compression type {codec}")
    try:
        return decompressor(data, limit)
    except (zlib.error, zstandard.ZstdError, cramjam.DecompressionError, struct.error) as error:
        raise CorruptBatch(
            f"cannot decompress {Compression(codec).name.lower()}: {error}"
        ) from None


def _too_large(limit: int) -> BatchTooLarge:
    return BatchTooLarge(f"the batch decompresses to more than {limit} bytes")


def _compress_gzip(data: bytes) -> bytes:
    return zlib.compress(data, wbits=_GZIP_WINDOW)


def _decompress_gzip(data: Buffer, limit: int) -> bytes:
    output = bytearray()
    while data:
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        output += member.decompress(data, limit + 1 - len(output))
        if len(output) > limit:
            raise _too_large(limit)
        if not member.eof:
            raise CorruptBatch("cannot decompress gzip: the data ends too early")
        data = member.unused_data
    return bytes(output)


def _compress_snappy(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BIG_ENDIAN_SIZE.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, limit: int) -> bytes:
    view = memoryview(data)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, limit)
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(view):
        (size,) = _BIG_ENDIAN_SIZE.unpack_from(view, position)
        position += _BIG_ENDIAN_SIZE.size
        if not 0 < size <= len(view) - position:
            raise CorruptBatch(f"cannot decompress snappy: a block of {size} bytes")
        output += _decompress_snappy_block(view[position : position + size], limit - len(output))
        position += size
    return bytes(output)


def _decompress_snappy_block(block: memoryview, limit: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > limit:
        raise _too_large(limit)
    return bytes(cramjam.snappy.decompress_raw(block))


def _compress_lz4(data: bytes) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        stored = data[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(stored, store_size=False))
        if len(block) < len(stored):
            parts += (_LITTLE_ENDIAN_SIZE.pack(len(block)), block)
        else:
            parts += (_LITTLE_ENDIAN_SIZE.pack(len(stored) | _LZ4_STORED_FLAG), stored)
    parts.append(_LZ4_END)
    return b"".join(parts)


def _decompress_lz4(data: Buffer, limit: int) -> bytes:
    # The library has no limit of its own but stops at the end of the buffer that it is given,
    # without saying why: one byte more than the limit distinguishes "too large" from "corrupt".
    bound = min(limit + 1, _lz4_bound(memoryview(data)))
    output = bytearray(bound)
    try:
        size = cramjam.lz4.decompress_into(data, output)
    except cramjam.DecompressionError as error:
        if bound > limit and "write" in str(error):
            raise _too_large(limit) from None
        raise
    if size > limit:
        raise _too_large(limit)
    return bytes(memoryview(output)[:size])


def _lz4_bound(data: memoryview) -> int:
    """An upper bound for the content: what its blocks can hold, or any frame of that length."""
    if len(data) < len(_LZ4_HEADER):
        return len(data) * _LZ4_RATIO_MAX
    flags = data[4]
    block_bytes = 1 << (2 * (data[5] >> 4 & 7) + 8)
    checksum_bytes = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
    position = len(_LZ4_HEADER) + (8 if flags & _LZ4_CONTENT_SIZE else 0)
    blocks = 0
    while position + 4 <= len(data):
        (size,) = _LITTLE_ENDIAN_SIZE.unpack_from(data, position)
        if not size:
            break
        position += 4 + (size & ~_LZ4_STORED_FLAG) + checksum_bytes
        blocks += 1
    if position + 4 + (4 if flags & _LZ4_CONTENT_CHECKSUM else 0) != len(data):
        return len(data) * _LZ4_RATIO_MAX
    return blocks * block_bytes


def _compress_zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def _decompress_zstd(data: Buffer, limit: int) -> bytes:
    reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
    output = bytearray()
    while chunk := reader.read(min(limit + 1 - len(output), _ZSTD_CHUNK_BYTES)):
        output += chunk
        if len(output) > limit:
            raise _too_large(limit)
    return bytes(output)


_ZSTD_CHUNK_BYTES = 1024 * 1024

_COMPRESSORS: dict[int, Callable[[bytes], bytes]] = {
    Compression.GZIP: _compress_gzip,
    Compression.SNAPPY: _compress_snappy,
    Compression.LZ4: _compress_lz4,
    Compression.ZSTD: _compress_zstd,
}

_DECOMPRESSORS: dict[int, Callable[[Buffer, int], bytes]] = {
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _decompress_lz4,
    Compression.ZSTD: _decompress_zstd,
}
