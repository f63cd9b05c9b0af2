"""Compaction in a thread of its own, beside appends, flushes, reads and retention."""

import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ottla.protocol.topics import TopicPartition
from ottla.records.batch import iterate_headers, read_header, validate_checksum
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.storage.cleaner import LogCleaner
from ottla.storage.config import LogConfig
from ottla.storage.local_filesystem import LocalFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.opening import open_partition_log
from ottla.storage.recovery import LoadRequest

NOW_MS = 1_700_000_000_000
APPENDS = 1500
CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=1500,
    index_interval_bytes=200,
    min_cleanable_dirty_ratio=0.0,
)


class Workers:
    """Threads that repeat a step until all appends are done; the first error stops them all."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def start(self, step: Callable[[], object]) -> None:
        def run() -> None:
            try:
                while not self.done.is_set():
                    step()
            except BaseException as error:
                self.errors.append(error)
                self.done.set()

        thread = threading.Thread(target=run)
        thread.start()
        self._threads.append(thread)

    def finish(self) -> None:
        self.done.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]


def append(log: PartitionLog, key: int) -> None:
    offset = log.log_end_offset
    record = Record(timestamp=NOW_MS, key=b"%d" % key, value=b"%d at %d" % (key, offset))
    batch = build_batch([record])
    log.append_as_leader(memoryview(batch), read_header(batch), 0, NOW_MS)


def read_from(log: PartitionLog, offset: int) -> dict[bytes, int]:
    """The last offset of each key; checks every batch and every record."""
    latest: dict[bytes, int] = {}
    hint = None
    while (part := log.read(offset, 1000, log.high_watermark, hint)) is not None:
        data = part.read()
        assert len(data) == part.size
        for position, header in iterate_headers(data):
            validate_checksum(data, position, header)
            for record in iterate_records(data, position):
                assert record.value == b"%s at %d" % (record.key, record.offset)
                if record.offset >= offset:
                    latest[record.key or b""] = record.offset
        assert part.next_offset > offset
        offset, hint = part.next_offset, part.hint
    return latest


def test_compaction_beside_everything_else(tmp_path: Path) -> None:
    filesystem = LocalFilesystem()
    directory = f"{tmp_path}/orders-0"
    filesystem.make_directory(directory)
    log_directory = LogDirectory(str(tmp_path), filesystem)
    request = LoadRequest(directory, TopicPartition("orders", 0), CONFIG, NOW_MS)
    log = open_partition_log(log_directory, request)
    cleaner = LogCleaner(
        filesystem, lambda: NOW_MS, dedupe_buffer_size=1 << 20, io_buffer_size=4096
    )
    chance = random.Random(7)
    expected: dict[bytes, int] = {}
    cleaned_count = 0

    def clean() -> None:
        nonlocal cleaned_count
        cleaned_count += cleaner.clean_filthiest([log]) is not None

    def flush() -> None:
        log.high_watermark = log.flush()

    workers = Workers()
    workers.start(clean)
    workers.start(flush)
    workers.start(lambda: read_from(log, 0))
    workers.start(lambda: read_from(log, random.Random(3).randrange(log.log_end_offset + 1)))
    workers.start(lambda: log.offset_for_timestamp(NOW_MS))
    for _ in range(APPENDS):
        if workers.done.is_set():
            break
        key = chance.randrange(20)
        expected[b"%d" % key] = log.log_end_offset
        append(log, key)
    workers.finish()
    log.roll()
    log.high_watermark = log.flush()
    while cleaner.clean_filthiest([log]):
        cleaned_count += 1
    assert cleaned_count
    assert read_from(log, 0) == expected
    log.close()
    again = open_partition_log(log_directory, replace(request, clean_shutdown=True))
    again.high_watermark = again.log_end_offset
    assert read_from(again, 0) == expected
