"""Batches and logs for the tests of storage."""

from ottla.protocol.topics import TopicPartition
from ottla.records.batch import BatchHeader, iterate_headers, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import Marker, build_marker, iterate_records
from ottla.storage.appended import Appended
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.opening import open_partition_log

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)
DIRECTORY = "/data/orders-0"


def produced(
    *values: bytes, timestamp: int = NOW_MS, **options: object
) -> tuple[memoryview, BatchHeader]:
    """A batch as a client sends it."""
    records = [Record(timestamp=timestamp, value=value) for value in values]
    batch = build_batch(records, **options)  # type: ignore[arg-type]
    return memoryview(batch), read_header(batch)


def append(
    log: PartitionLog, *values: bytes, leader_epoch: int = 0, now_ms: int = NOW_MS, **options
) -> Appended:
    records, header = produced(*(values or (b"value",)), **options)
    return log.append_as_leader(records, header, leader_epoch, now_ms)


def append_marker(log, marker_type, producer_id, producer_epoch, leader_epoch=0) -> Appended:
    batch = build_marker(
        Marker(marker_type, 0),
        timestamp_ms=NOW_MS,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return log.append_control(batch, leader_epoch)


def open_log(filesystem=None, config: LogConfig | None = None, **options) -> PartitionLog:
    filesystem = filesystem or FaultyFilesystem()
    filesystem.make_directory(DIRECTORY)
    options = {"now_ms": NOW_MS, **options}
    return open_partition_log(
        DIRECTORY, PARTITION, None, config or LogConfig(), filesystem, **options
    )


def values_of(data: bytes) -> list[bytes | None]:
    return [
        record.value
        for position, _ in iterate_headers(data)
        for record in iterate_records(data, position)
    ]


def read_all(log: PartitionLog, offset: int | None = None, size_max: int = 1 << 20) -> bytes:
    """Every batch from the offset on, read as a sequential reader does."""
    offset = log.log_start_offset if offset is None else offset
    data, hint = b"", None
    while (part := log.read(offset, size_max, log.log_end_offset, hint)) is not None:
        data += part.read()
        offset, hint = part.next_offset, part.hint
    return data
