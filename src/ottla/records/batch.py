"""The header of a record batch, format 2 (KIP-98).

    base offset int64            rewritten by the leader
    batch length int32           bytes after this field
    partition leader epoch int32 rewritten by the leader
    magic int8                   2
    crc uint32                   CRC-32C of all that follows
    attributes int16             0-2 compression, 3 timestamp type, 4 transactional, 5 control,
                                 6 the base timestamp is a delete horizon (KIP-534)
    last offset delta int32
    base timestamp int64
    max timestamp int64
    producer id int64
    producer epoch int16
    base sequence int32
    records count int32

Nothing here examines a record. A buffer is anything that `struct` reads; it must be writable if it
is written to.
"""

import enum
import struct
from collections.abc import Iterator
from typing import NamedTuple

from ottla.records.crc import crc32c
from ottla.records.errors import CorruptBatch

Buffer = bytes | bytearray | memoryview

HEADER_SIZE = 61
LENGTH_END = 12  # The batch length counts the bytes after this position.
CRC_START = 21  # The checksum covers the bytes from here on.
MAGIC = 2

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
SEQUENCE_MAX = 2**31 - 1

COMPRESSION_MASK = 0x07
APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

HEADER = struct.Struct(">qiibIhiqqqhii")
_BASE_OFFSET_AND_LENGTH = struct.Struct(">qi")
_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_MAX_TIMESTAMP = struct.Struct(">q")

_LEADER_EPOCH_POSITION = 12
_CRC_POSITION = 17
_ATTRIBUTES_POSITION = 21
_MAX_TIMESTAMP_POSITION = 35

_unpack = HEADER.unpack_from
_new_tuple = tuple.__new__


class TimestampType(enum.Enum):
    CREATE = "create"  # Each record has the time assigned by its producer.
    APPEND = "append"  # Every record has the batch's max timestamp, set by the leader.


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int  # Invariant: <= last_offset_delta + 1; compaction removes records.

    @property
    def size(self) -> int:
        """Bytes in the whole batch."""
        return self.batch_length + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        append = self.attributes & APPEND_TIME_FLAG
        return TimestampType.APPEND if append else TimestampType.CREATE

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones and markers of the batch may be removed; set by compaction."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequences wrap: 2^31 - 1 is followed by 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Unpack without checks; the buffer must have at least HEADER_SIZE bytes at the position."""
    return _new_tuple(BatchHeader, _unpack(buffer, position))


def iterate_headers(buffer: Buffer, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield each complete batch from `start` on, with its position.

    Stops at an incomplete last batch; raises CorruptBatch for an impossible length or magic. Does
    not verify checksums.
    """
    end = len(buffer)
    while start + HEADER_SIZE <= end:
        header = read_header(buffer, start)
        if header.magic != MAGIC or header.batch_length < HEADER_SIZE - LENGTH_END:
            raise CorruptBatch(
                f"no batch at position {start}: magic {header.magic}, length {header.batch_length}"
            )
        if start + header.size > end:
            return
        yield start, header
        start += header.size


def checksum(buffer: Buffer, position: int, size: int) -> int:
    """The CRC-32C for the header of the batch of `size` bytes at `position`."""
    return crc32c(memoryview(buffer)[position + CRC_START : position + size])


def validate_checksum(buffer: Buffer, position: int, header: BatchHeader) -> None:
    actual = checksum(buffer, position, header.size)
    if actual != header.crc:
        raise CorruptBatch(
            f"the batch at offset {header.base_offset} has checksum {actual:#010x},"
            f" not {header.crc:#010x} as its header says"
        )


def assign(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Write the leader's fields, both outside the checksum."""
    _BASE_OFFSET.pack_into(buffer, position, base_offset)
    _LEADER_EPOCH.pack_into(buffer, position + _LEADER_EPOCH_POSITION, leader_epoch)


def set_append_time(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Set the leader's time for every record of the batch, and update the checksum."""
    (_, batch_length) = _BASE_OFFSET_AND_LENGTH.unpack_from(buffer, position)
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, position + _ATTRIBUTES_POSITION)
    _ATTRIBUTES.pack_into(buffer, position + _ATTRIBUTES_POSITION, attributes | APPEND_TIME_FLAG)
    _MAX_TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_POSITION, timestamp_ms)
    write_checksum(buffer, position, batch_length + LENGTH_END)


def write_checksum(buffer: bytearray | memoryview, position: int, size: int) -> None:
    _CRC.pack_into(buffer, position + _CRC_POSITION, checksum(buffer, position, size))
