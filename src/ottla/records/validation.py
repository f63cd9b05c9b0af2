"""The leader's checks of produced records, before it touches its log.

The cost is per batch: nothing here examines a record, except `validate_keys`, which only compacted
topics pay for, `validate_records`, which topics must enable, and `find_outside`, which names the
records of a rejected batch.
"""

from ottla.records.batch import (
    APPEND_TIME_FLAG,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_START,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_header,
)
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, Compression
from ottla.records.crc import crc32c
from ottla.records.decoder import decode_body, iterate_records, read_varint
from ottla.records.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidRecord,
    InvalidTimestamp,
    RecordError,
    UnsupportedFormat,
)

_MAGIC_POSITION = 16  # The same in all three message formats.
_RECORD_BYTES_MIN = 7  # Six lengths and deltas of one byte each, and the attributes.
_PLAIN_ATTRIBUTES = frozenset(range(Compression.ZSTD + 1))  # A codec and nothing else.


def validate_produced(records: memoryview, *, max_batch_bytes: int) -> BatchHeader:
    """The header if the bytes are a single intact batch, otherwise a RecordError."""
    size = len(records)
    if size < HEADER_SIZE or records[_MAGIC_POSITION] != MAGIC:
        raise _not_a_batch(records)
    header = read_header(records)
    if header[1] != size - LENGTH_END:
        raise _not_one_batch(header, size)
    if size > max_batch_bytes:
        raise BatchTooLarge(f"a batch of {size} bytes; the limit is {max_batch_bytes}")
    crc = crc32c(records[CRC_START:])
    if crc != header[4]:
        raise CorruptBatch(f"the batch has checksum {crc:#010x}, not {header[4]:#010x}")
    if not 0 <= header[6] == header[12] - 1:
        raise InvalidRecord(
            f"a batch of {header.records_count} records whose last offset delta is"
            f" {header.last_offset_delta}"
        )
    room = DECOMPRESSED_BYTES_MAX if header[5] & COMPRESSION_MASK else size - HEADER_SIZE
    if header[12] * _RECORD_BYTES_MIN > room:
        raise InvalidRecord(f"{header.records_count} records cannot be in a batch of {size} bytes")
    if header[5] not in _PLAIN_ATTRIBUTES:
        _validate_attributes(header)
    if header[9] >= 0 and (header[10] < 0 or header[11] < 0):
        raise InvalidRecord(
            f"epoch {header.producer_epoch} and sequence {header.base_sequence}"
            f" of producer {header.producer_id}"
        )
    return header


def _not_a_batch(records: memoryview) -> RecordError:
    if len(records) > _MAGIC_POSITION:
        magic = records[_MAGIC_POSITION]
        if magic < MAGIC:
            return UnsupportedFormat(
                f"message format {magic} is not supported;"
                " use a client that writes format 2 (Kafka 0.11 or newer)"
            )
        if magic > MAGIC:
            return CorruptBatch(f"there is no message format {magic}")
    return CorruptBatch(f"{len(records)} bytes are fewer than a batch header")


def _not_one_batch(header: BatchHeader, size: int) -> RecordError:
    if header.batch_length < HEADER_SIZE - LENGTH_END or header.size > size:
        return CorruptBatch(f"a batch of {header.size} bytes in {size}")
    return InvalidRecord("a produce request has exactly one batch for each partition")


def _validate_attributes(header: BatchHeader) -> None:
    attributes = header.attributes
    if attributes & COMPRESSION_MASK > Compression.ZSTD:
        raise InvalidRecord(f"there is no compression type {header.compression}")
    if attributes & APPEND_TIME_FLAG:
        raise InvalidTimestamp("only the broker sets the timestamp type LogAppendTime")
    if attributes & CONTROL_FLAG:
        raise InvalidRecord("clients do not write control batches")
    if attributes & DELETE_HORIZON_FLAG:
        raise InvalidRecord("only compaction sets a delete horizon")
    if attributes & TRANSACTIONAL_FLAG and header.producer_id < 0:
        raise InvalidRecord("a transactional batch without a producer id")


def validate_keys(records: memoryview, *, limit: int = DECOMPRESSED_BYTES_MAX) -> None:
    """A compacted topic keeps the last record of each key, so every record needs one."""
    header = read_header(records)
    body = decode_body(records, 0, header, limit)
    try:
        keyless = _find_keyless(body, header.records_count)
    except IndexError:
        raise CorruptBatch("the batch ends inside a record") from None
    if keyless:
        raise InvalidRecord("a compacted topic does not accept records without a key", keyless)


def _find_keyless(body: bytes, count: int) -> list[int]:
    """Indexes of the records without a key. It skips what it can, because others wait for it."""
    keyless = []
    position = 0
    for index in range(count):
        size, start = read_varint(body, position)
        position = start + size
        _, key_start = read_varint(body, start + 1)
        _, key_start = read_varint(body, key_start)
        key_size, key_start = read_varint(body, key_start)
        if key_size < 0:
            keyless.append(index)
            key_size = 0
        if key_start + key_size >= position or position > len(body):
            raise CorruptBatch(f"a key of {key_size} bytes in a record of {size}")
    if position != len(body):
        raise CorruptBatch(f"{len(body) - position} bytes after the last record")
    return keyless


def validate_records(records: memoryview, *, limit: int = DECOMPRESSED_BYTES_MAX) -> None:
    """Check that every record can be parsed, and has the offset for its position in the batch.

    The checksum was valid, so the producer wrote it like that and need not send it again.
    """
    base_offset = read_header(records).base_offset
    try:
        for index, record in enumerate(iterate_records(records, limit=limit)):
            if record.offset != base_offset + index:
                delta = record.offset - base_offset
                raise InvalidRecord(f"record {index} has offset delta {delta}")
    except CorruptBatch as error:
        raise InvalidRecord(str(error)) from None


def find_outside(
    records: memoryview, earliest_ms: int, latest_ms: int, *, limit: int = DECOMPRESSED_BYTES_MAX
) -> list[int]:
    """Indexes of the records with timestamps outside the range."""
    return [
        index
        for index, record in enumerate(iterate_records(records, limit=limit))
        if record.timestamp != NO_TIMESTAMP and not earliest_ms <= record.timestamp <= latest_ms
    ]
