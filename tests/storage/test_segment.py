from collections.abc import Iterator
from typing import Any

import pytest

from ottla.storage import segment as segments
from ottla.storage.batch_walk import Batch, walk
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptLog
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log_directory import LogDirectory
from ottla.storage.segment import Segment

from .batches import DIRECTORY, NOW_MS, append, batch_at, open_log

CONFIG = LogConfig(index_interval_bytes=100)


def filled_segment(disk: FaultyFilesystem | None = None) -> Segment:
    log = open_log(disk, CONFIG)
    for index in range(10):
        append(log, b"a", b"b", timestamp=NOW_MS + index % 7)
    return log.segments[0]


def test_nothing_is_written_before_there_is_something() -> None:
    disk = FaultyFilesystem()
    disk.make_directory(DIRECTORY)
    segment = Segment(LogDirectory("/data", disk), DIRECTORY, 0)
    assert segment.largest == (-1, 0)
    assert segment.offset_index.entries_count == 0
    assert disk.list(DIRECTORY) == []


def test_offsets_are_found() -> None:
    segment = filled_segment()
    for offset in range(20):
        batch = batch_at(segment, offset)
        assert batch.base_offset <= offset <= batch.last_offset
    assert segment.find_offset(20) is None


def test_a_boundary_is_the_end_of_a_batch() -> None:
    segment = filled_segment()
    ends = [batch_at(segment, offset).end for offset in range(0, 20, 2)]
    for start in [0, *ends[:-1]]:
        for stop in range(start, segment.size + 10, 7):
            position, offset = segment.boundary_by(start, stop)
            fitting = [end for end in ends if start < end <= stop]
            expected = fitting[-1] if fitting else min(end for end in ends if end > start)
            assert position == expected
            assert offset == 2 * ends.index(expected) + 2


def test_a_boundary_does_not_take_in_what_is_appended_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = open_log(None, CONFIG)
    append(log, b"a", b"b")
    segment = log.segments[0]
    size = segment.size

    def overtaken_walk(*arguments: Any, **options: Any) -> Iterator[Batch]:
        yield from walk(*arguments, **options)
        append(log, b"c")

    monkeypatch.setattr(segments, "walk", overtaken_walk)
    assert segment.boundary_by(0, 1) == (size, 2)
    assert segment.size > size


def test_the_largest_timestamp_is_that_of_the_first_batch_which_has_it() -> None:
    assert filled_segment().largest == (NOW_MS + 6, 13)


def test_an_unloaded_segment_knows_the_same() -> None:
    disk = FaultyFilesystem()
    segment = filled_segment(disk)
    segment.seal()
    segment.unload()
    other = Segment(segment.log_directory, DIRECTORY, 0, size=segment.size, on_disk=True)
    assert other.largest == segment.largest
    assert other.find_offset(11) == segment.find_offset(11)
    assert other.load_tail() == 20


def test_a_file_that_became_shorter_is_reported() -> None:
    disk = FaultyFilesystem()
    segment = filled_segment(disk)
    segment.unload()
    disk.open(segment.path).truncate(10)
    with pytest.raises(CorruptLog, match="bytes were there before"):
        segment.file()


def test_bytes_behind_the_end_are_cut_off() -> None:
    disk = FaultyFilesystem()
    segment = filled_segment(disk)
    segment.unload()
    disk.open(segment.path).append(b"rest of a failed append")
    assert segment.file().size == segment.size


def test_deleted_segments_leave_no_file_of_that_name() -> None:
    disk = FaultyFilesystem()
    segment = filled_segment(disk)
    segment.seal()
    segment.flush_indexes()
    renamed = segment.mark_deleted()
    assert sorted(renamed) == [
        f"{DIRECTORY}/00000000000000000000{suffix}.deleted"
        for suffix in (".index", ".log", ".timeindex")
    ]
    assert all(name.endswith(".deleted") for name in disk.list(DIRECTORY))
