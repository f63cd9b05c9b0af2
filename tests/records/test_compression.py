import struct
import zlib

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.compression import Compression, compress, decompress
from ottla.records.errors import BatchTooLarge, CorruptBatch, RecordError, UnsupportedFormat

CODECS = list(Compression)
COMPRESSED = [codec for codec in CODECS if codec is not Compression.NONE]


@given(data=st.binary(max_size=300), codec=st.sampled_from(CODECS), repeat=st.integers(0, 2000))
def test_round_trip(data: bytes, codec: int, repeat: int) -> None:
    data *= repeat
    assert bytes(decompress(compress(data, codec), codec)) == data


@pytest.mark.parametrize("codec", COMPRESSED)
def test_bomb_is_refused(codec: int) -> None:
    bomb = compress(bytes(8 * 1024 * 1024), codec)
    assert len(bomb) < 512 * 1024
    with pytest.raises(BatchTooLarge):
        decompress(bomb, codec, limit=1024 * 1024)


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537])
def test_limit_is_inclusive(codec: int, size: int) -> None:
    data = compress(bytes(size), codec)
    assert len(decompress(data, codec, limit=size)) == size
    if size:
        with pytest.raises(BatchTooLarge):
            decompress(data, codec, limit=size - 1)


def test_declared_size_of_snappy_is_not_believed() -> None:
    with pytest.raises(RecordError):
        decompress(b"\xff\xff\xff\xff\x0f" + bytes(20), Compression.SNAPPY)


@given(data=st.binary(max_size=200), codec=st.sampled_from(COMPRESSED), frame=st.booleans())
def test_garbage_is_refused_or_decoded_but_never_crashes(
    data: bytes, codec: int, frame: bool
) -> None:
    if frame:
        data = compress(b"abcdef" * 20, codec)[: len(data) % 20 + 8] + data
    try:
        decompress(data, codec, limit=1 << 20)
    except RecordError:
        pass


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_unknown_codec_is_refused(codec: int) -> None:
    with pytest.raises(UnsupportedFormat):
        decompress(b"", codec)
    with pytest.raises(UnsupportedFormat):
        compress(b"", codec)


def test_raw_snappy_is_read() -> None:
    data = b"hello " * 50
    assert decompress(bytes(cramjam.snappy.compress_raw(data)), Compression.SNAPPY) == data


def test_snappy_is_written_as_xerial_does() -> None:
    data = compress(bytes(40 * 1024), Compression.SNAPPY)
    assert data[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    (first,) = struct.unpack_from(">i", data, 16)
    assert cramjam.snappy.decompress_raw_len(data[20 : 20 + first]) == 32 * 1024


def test_linked_lz4_blocks_are_read() -> None:
    data = b"hello " * 50_000
    assert decompress(bytes(cramjam.lz4.compress(data)), Compression.LZ4) == data


def test_lz4_is_written_in_independent_blocks() -> None:
    flags = compress(bytes(200_000), Compression.LZ4)[4]
    assert flags & 0x20, "Kafka's Java client does not read dependent blocks"


def test_gzip_of_several_members_is_read() -> None:
    data = zlib.compress(b"one", wbits=31) + zlib.compress(b"two", wbits=31)
    assert decompress(data, Compression.GZIP) == b"onetwo"


def test_truncated_gzip_is_refused() -> None:
    with pytest.raises(CorruptBatch):
        decompress(zlib.compress(b"hello", wbits=31)[:-4], Compression.GZIP)


def test_zstd_without_content_size_is_read() -> None:
    data = b"hello " * 5000
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    assert decompress(compressor.compress(data), Compression.ZSTD) == data


@pytest.mark.parametrize("size", [0, 100, 70_000, 5_000_000])
def test_lz4_frames_of_another_library(size: int) -> None:
    data = bytes(range(256)) * (size // 256)
    frame = bytes(cramjam.lz4.compress(data))
    assert bytes(decompress(frame, Compression.LZ4, limit=size)) == data


def test_lz4_frames_behind_one_another() -> None:
    frames = compress(b"a" * 100, Compression.LZ4) + compress(b"b" * 100, Compression.LZ4)
    assert bytes(decompress(frames, Compression.LZ4)) == b"a" * 100 + b"b" * 100
