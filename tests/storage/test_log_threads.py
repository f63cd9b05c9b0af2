"""Appends on one thread, and flushes, reads, rolls and retention on others."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

from ottla.protocol.errors import ApiError
from ottla.storage.config import LogConfig
from ottla.storage.local_filesystem import LocalFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.opening import open_partition_log
from ottla.storage.recovery import LoadRequest

from .batches import NOW_MS, PARTITION, append, read_all, values_of

APPENDS_COUNT = 1500


def open_log(directory: str, config: LogConfig, **options: Any) -> PartitionLog:
    filesystem = LocalFilesystem()
    filesystem.make_directory(directory)
    log_directory = LogDirectory(directory, filesystem, open_files_max=3)
    return open_partition_log(
        log_directory, LoadRequest(directory, PARTITION, config, NOW_MS, **options)
    )


def repeat(stopped: Event, work: Callable[[], object]) -> None:
    count = 0
    while not stopped.is_set() or not count:
        work()
        count += 1


def run_beside_appends(log: PartitionLog, *works: Callable[[], object]) -> None:
    stopped = threading.Event()
    with ThreadPoolExecutor(len(works)) as threads:
        running = [threads.submit(repeat, stopped, work) for work in works]
        try:
            for index in range(APPENDS_COUNT):
                append(log, b"%d" % index)
                log.high_watermark = log.log_end_offset
        finally:
            stopped.set()
        for future in running:
            future.result()


def test_everything_is_read_and_synced_while_segments_roll(tmp_path: Path) -> None:
    directory = str(tmp_path / "orders-0")
    log = open_log(directory, LogConfig(segment_bytes=2000, index_interval_bytes=200))

    def read() -> None:
        for size_max in (700, 1):
            values = values_of(read_all(log, size_max=size_max))
            assert values == [b"%d" % index for index in range(len(values))]

    def flush() -> None:
        assert log.flush() <= log.log_end_offset

    run_beside_appends(log, read, flush, log.roll, log.write_indexes)
    expected = [b"%d" % index for index in range(APPENDS_COUNT)]
    assert log.flush() == APPENDS_COUNT
    for segment in log.segments[:-1]:
        assert (tmp_path / "orders-0" / f"{segment.base_offset:020d}.timeindex").exists()
    assert values_of(read_all(log)) == expected
    assert len(log.log_directory.open_files) <= 3
    again = open_log(directory, log.config)
    assert values_of(read_all(again)) == expected


def test_readers_never_see_what_retention_removes_as_damage(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=2000, index_interval_bytes=200, retention_bytes=4000)
    log = open_log(str(tmp_path / "orders-0"), config)

    def read() -> None:
        with contextlib.suppress(ApiError):
            values = [int(value or b"") for value in values_of(read_all(log, size_max=700))]
            assert values == sorted(values)

    run_beside_appends(log, log.flush, lambda: log.delete_expired(NOW_MS), log.roll, read)
    assert log.log_directory.failure is None
    log.high_watermark = log.log_end_offset  # The last appends may have come after the last read.
    log.delete_expired(NOW_MS)
    assert log.size < 10_000
