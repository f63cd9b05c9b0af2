"""Compacted logs for the tests of compaction."""

from typing import Any

from ottla.records.batch import iterate_headers, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.storage.cleaner import LogCleaner
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog

from .batches import NOW_MS, open_log, read_all

DAY_MS = 24 * 3_600_000
COMPACT = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=300,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.0,
)


def new_cleaner(filesystem: FaultyFilesystem, now_ms: int = NOW_MS, **options: Any) -> LogCleaner:
    sizes = {"dedupe_buffer_size": 1 << 20, "io_buffer_size": 256, **options}
    return LogCleaner(filesystem, lambda: now_ms, **sizes)


def put(log: PartitionLog, key: str, value: str | None, **options: object) -> int:
    timestamp = int(str(options.pop("timestamp", NOW_MS)))
    record = Record(
        timestamp=timestamp, key=key.encode(), value=None if value is None else value.encode()
    )
    batch = build_batch([record], **options)  # type: ignore[arg-type]
    return log.append_as_leader(memoryview(batch), read_header(batch), 0, NOW_MS).first_offset


def settle(log: PartitionLog) -> None:
    """Everything is replicated, and nothing is in the active segment."""
    log.roll()
    log.flush()
    log.high_watermark = log.log_end_offset


def records_of(log: PartitionLog, offset: int | None = None) -> list[Record]:
    data = read_all(log, offset)
    return [
        record
        for position, header in iterate_headers(data)
        if not header.is_control
        for record in iterate_records(data, position)
    ]


def content(log: PartitionLog, offset: int | None = None) -> list[tuple[int, str, str | None]]:
    return [
        (
            record.offset,
            (record.key or b"").decode(),
            None if record.value is None else record.value.decode(),
        )
        for record in records_of(log, offset)
    ]


def filled_log(filesystem: FaultyFilesystem, config: LogConfig = COMPACT) -> PartitionLog:
    log = open_log(filesystem, config)
    for number in range(20):
        put(log, f"key-{number % 4}", f"value-{number}")
    settle(log)
    return log
