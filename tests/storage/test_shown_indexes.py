"""The active segment's indexes, as other programs see them."""

import pytest

from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.offset_index import OffsetIndex
from ottla.storage.time_index import TimeIndex

from .batches import DIRECTORY, append, open_log, read_all

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=100)
STEM = f"{DIRECTORY}/{0:020d}"


@pytest.fixture
def disk() -> FaultyFilesystem:
    return FaultyFilesystem()


def fill(log: PartitionLog, count: int) -> None:
    for index in range(log.log_end_offset, log.log_end_offset + count):
        append(log, b"%02d" % index * 20, timestamp=1_700_000_000_000 + index)


def shown(disk: FaultyFilesystem) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The entries in the first segment's index files."""
    return (
        OffsetIndex(f"{STEM}.index", 0, disk).pairs(),
        TimeIndex(f"{STEM}.timeindex", 0, disk).pairs(),
    )


def kept(
    log: PartitionLog, segment_index: int = 0
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The entries that the log knows."""
    segment = log.segments[segment_index]
    return segment.offset_index.pairs(), segment.time_index.pairs()


def test_they_are_there_before_there_is_an_entry(disk: FaultyFilesystem) -> None:
    log = open_log(disk, CONFIG)
    log.write_indexes()
    assert not disk.exists(f"{STEM}.index")  # There is no segment yet either.
    fill(log, 1)
    log.write_indexes()
    assert disk.read_bytes(f"{STEM}.index") == disk.read_bytes(f"{STEM}.timeindex") == b""


def test_they_grow_with_the_segment(disk: FaultyFilesystem) -> None:
    log = open_log(disk, CONFIG)
    fill(log, 4)
    log.write_indexes()
    first = shown(disk)
    assert first == kept(log)
    assert all(first)
    fill(log, 4)
    assert shown(disk) == first
    log.write_indexes()
    assert shown(disk) == kept(log) != first


def test_what_is_truncated_is_not_shown(disk: FaultyFilesystem) -> None:
    log = open_log(disk, CONFIG)
    fill(log, 8)
    log.write_indexes()
    log.truncate_to(4)
    assert shown(disk) == kept(log)
    fill(log, 6)
    log.write_indexes()
    assert shown(disk) == kept(log)


def test_after_a_crash_they_are_made_from_the_batches(disk: FaultyFilesystem) -> None:
    log = open_log(disk, CONFIG)
    fill(log, 8)
    log.write_indexes()
    expected = kept(log)
    disk.open(f"{STEM}.index").append(b"\xff" * 13)
    disk.open(f"{STEM}.timeindex").truncate(5)
    disk.kill()
    again = open_log(disk, CONFIG)
    assert kept(again) == expected
    again.write_indexes()
    assert shown(disk) == expected


@pytest.mark.parametrize("seed", range(10))
def test_those_of_a_segment_that_was_rolled_survive_a_power_loss(seed: int) -> None:
    disk = FaultyFilesystem(seed)
    log = open_log(disk, CONFIG)
    fill(log, 8)
    log.write_indexes()
    log.roll()
    fill(log, 1)
    log.flush()
    expected, content, point = kept(log), read_all(log), log.flushed_offset
    disk.crash()
    again = open_log(disk, CONFIG, recovery_point=point)
    assert shown(disk) == kept(again) == expected
    assert read_all(again) == content


def test_a_full_disk_does_not_stop_the_log(disk: FaultyFilesystem) -> None:
    log = open_log(disk, CONFIG)
    fill(log, 4)
    disk.disk_full()
    log.write_indexes()
    assert log.log_directory.failure is None
    disk.disk_full(None)
    fill(log, 1)
    log.write_indexes()
    assert shown(disk) == kept(log)
