"""Batches and logs for storage tests."""

from typing import Any

from ottla.protocol.topics import TopicPartition
from ottla.records.batch import BatchHeader, iterate_headers, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import ControlType, Marker, build_marker, iterate_records
from ottla.storage.appended import Appended
from ottla.storage.batch_walk import Batch
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.filesystem import parent_of
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.opening import open_partition_log
from ottla.storage.reading import FoundTimestamp, LogSlice, ReadHint
from ottla.storage.recovery import LoadRequest
from ottla.storage.segment import Segment

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)
DIRECTORY = "/data/orders-0"


def produced(
    *values: bytes, timestamp: int = NOW_MS, **options: object
) -> tuple[memoryview, BatchHeader]:
    """A batch from a client."""
    records = [Record(timestamp=timestamp, value=value) for value in values]
    batch = build_batch(records, **options)  # type: ignore[arg-type]
    return memoryview(batch), read_header(batch)


def append(
    log: PartitionLog, *values: bytes, leader_epoch: int = 0, now_ms: int = NOW_MS, **options: Any
) -> Appended:
    records, header = produced(*(values or (b"value",)), **options)
    return log.append_as_leader(records, header, leader_epoch, now_ms)


def append_marker(
    log: PartitionLog,
    marker_type: ControlType,
    producer_id: int,
    producer_epoch: int,
    leader_epoch: int = 0,
) -> Appended:
    batch = build_marker(
        Marker(marker_type, 0),
        timestamp_ms=NOW_MS,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return log.append_control(batch, leader_epoch)


def open_log(
    filesystem: FaultyFilesystem | None = None, config: LogConfig | None = None, **options: Any
) -> PartitionLog:
    filesystem = filesystem or FaultyFilesystem()
    filesystem.make_directory(DIRECTORY)
    options = {"now_ms": NOW_MS, **options}
    request = LoadRequest(DIRECTORY, PARTITION, config or LogConfig(), **options)
    return open_partition_log(LogDirectory(parent_of(DIRECTORY), filesystem), request)


def values_of(data: bytes) -> list[bytes | None]:
    return [
        record.value
        for position, _ in iterate_headers(data)
        for record in iterate_records(data, position)
    ]


def read_slice(
    log: PartitionLog, offset: int, size_max: int, limit: int, hint: ReadHint | None = None
) -> LogSlice:
    """From a log that has something to read there."""
    part = log.read(offset, size_max, limit, hint)
    assert part is not None
    return part


def batch_at(segment: Segment, offset: int) -> Batch:
    batch = segment.find_offset(offset)
    assert batch is not None
    return batch


def offset_of(found: FoundTimestamp | None) -> int:
    assert found is not None
    return found.offset


def read_all(log: PartitionLog, offset: int | None = None, size_max: int = 1 << 20) -> bytes:
    """Every batch from the offset on, read like a sequential reader."""
    offset = log.log_start_offset if offset is None else offset
    data, hint = b"", None
    while (part := log.read(offset, size_max, log.log_end_offset, hint)) is not None:
        data += part.read()
        offset, hint = part.next_offset, part.hint
    return data
