"""One round of compaction: what stays, what is removed, when, and concurrent changes."""

import itertools
import logging
import threading
from collections.abc import Callable

import pytest

from ottla.protocol.errors import ApiError
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import iterate_headers
from ottla.records.decoder import ControlType
from ottla.storage.cleanable import cleanable_of
from ottla.storage.cleaner import LogCleaner, group_segments
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.offset_map import ENTRY_BYTES
from ottla.storage.opening import open_partition_log
from ottla.storage.recovery import LoadRequest
from ottla.storage.segment import Segment
from ottla.storage.transaction_index import AbortedTransaction

from .batches import DIRECTORY, NOW_MS, PARTITION, append_marker, open_log, read_all
from .compaction import COMPACT, DAY_MS, content, filled_log, new_cleaner, put, records_of, settle


@pytest.fixture
def filesystem() -> FaultyFilesystem:
    return FaultyFilesystem()


def test_the_last_record_of_each_key_stays_with_its_offset(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    size = log.size
    cleaner = new_cleaner(filesystem)
    cleaned = cleaner.clean_filthiest([log])
    assert cleaned is not None
    assert cleaned.end_offset == 20
    assert cleaned.bytes_written < cleaned.bytes_read
    assert content(log) == [(16 + n, f"key-{n}", f"value-{16 + n}") for n in range(4)]
    assert content(log, 18) == content(log)[2:]
    assert log.size < size
    assert log.log_end_offset == 20
    assert cleaner.clean_filthiest([log]) is None


def test_appends_go_on_after_compaction(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    cleaner = new_cleaner(filesystem)
    cleaner.clean_filthiest([log])
    segments_count = len(log.segments)
    put(log, "key-1", "newer")
    settle(log)
    cleaner.clean_filthiest([log])
    assert len(log.segments) < segments_count
    assert content(log)[-1] == (20, "key-1", "newer")
    assert [key for _, key, _ in content(log)] == ["key-0", "key-2", "key-3", "key-1"]


def test_the_compacted_log_is_there_after_a_restart(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    new_cleaner(filesystem).clean_filthiest([log])
    expected = content(log)
    log.close()
    again = open_log(filesystem, COMPACT, clean_shutdown=True)
    assert content(again) == expected
    assert again.log_end_offset == 20
    assert new_cleaner(filesystem).cleaned_offset(again) == 20
    checkpoint = filesystem.read_bytes("/data/cleaner-offset-checkpoint")
    assert checkpoint.split() == b"0 1 orders 0 20".split()
    after_crash = open_log(filesystem, COMPACT)
    assert content(after_crash) == expected


def test_the_indexes_find_every_record(filesystem: FaultyFilesystem) -> None:
    log = open_log(filesystem, COMPACT)
    for number in range(60):
        put(log, f"key-{number % 50}", f"value-{number}", timestamp=NOW_MS + number)
    settle(log)
    new_cleaner(filesystem).clean_filthiest([log])
    records = records_of(log)
    assert len(records) == 50
    for segment in log.segments[:-1]:
        segment.offset_index.validate()
        segment.time_index.validate()
    for record in records:
        assert content(log, record.offset)[0][0] == record.offset
        found = log.offset_for_timestamp(record.timestamp)
        assert found is not None
        assert (found.offset, found.timestamp) == (record.offset, record.timestamp)


def test_the_active_segment_is_left_alone(filesystem: FaultyFilesystem) -> None:
    log = open_log(filesystem, COMPACT)
    put(log, "a", "1")
    put(log, "a", "2")
    log.flush()
    log.high_watermark = log.log_end_offset
    assert new_cleaner(filesystem).clean_filthiest([log]) is None
    log.roll()
    put(log, "a", "3")
    assert new_cleaner(filesystem).clean_filthiest([log]) is not None
    assert content(log) == [(1, "a", "2"), (2, "a", "3")]


def test_nothing_past_the_high_watermark_is_compacted(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    log.high_watermark = 10
    cleaned = new_cleaner(filesystem).clean_filthiest([log])
    assert cleaned is not None
    assert cleaned.end_offset <= 10
    assert [offset for offset, _, _ in content(log)][-10:] == list(range(10, 20))


def test_only_compacted_logs_are_compacted(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem, LogConfig(segment_bytes=300))
    assert new_cleaner(filesystem).clean_filthiest([log]) is None


def test_the_dirty_ratio_decides(filesystem: FaultyFilesystem) -> None:
    config = LogConfig(
        cleanup_policy=("compact", "delete"), segment_bytes=300, min_cleanable_dirty_ratio=0.5
    )
    log = open_log(filesystem, config)
    cleaner = new_cleaner(filesystem)
    for number in range(20):
        put(log, f"key-{number}", "value")
    settle(log)
    assert cleaner.clean_filthiest([log]) is not None
    for number in range(10):
        put(log, f"key-{number}", "value")
    settle(log)
    cleanable = cleanable_of(log, cleaner.cleaned_offset(log), NOW_MS)
    assert 0.3 < cleanable.dirty_ratio < 0.5
    assert cleaner.clean_filthiest([log]) is None
    for number in range(12):
        put(log, f"key-{number}", "value")
    settle(log)
    assert cleaner.clean_filthiest([log]) is not None


def test_max_compaction_lag_makes_it_due(filesystem: FaultyFilesystem) -> None:
    config = LogConfig(
        cleanup_policy=("compact",),
        segment_bytes=300,
        min_cleanable_dirty_ratio=1.0,
        max_compaction_lag_ms=DAY_MS,
    )
    log = filled_log(filesystem, config)
    assert new_cleaner(filesystem, NOW_MS + DAY_MS).clean_filthiest([log]) is None
    assert new_cleaner(filesystem, NOW_MS + DAY_MS + 1).clean_filthiest([log]) is not None


def test_max_compaction_lag_bounds_the_age_of_the_active_segment(
    filesystem: FaultyFilesystem,
) -> None:
    config = LogConfig(cleanup_policy=("compact",), max_compaction_lag_ms=1000)
    log = open_log(filesystem, config)
    put(log, "a", "1")
    put(log, "a", "2", timestamp=NOW_MS + 1000)
    assert len(log.segments) == 1
    put(log, "a", "3", timestamp=NOW_MS + 1001)
    assert len(log.segments) == 2


def test_min_compaction_lag_keeps_what_is_young(filesystem: FaultyFilesystem) -> None:
    config = LogConfig(
        cleanup_policy=("compact",),
        segment_bytes=300,
        min_cleanable_dirty_ratio=0.0,
        min_compaction_lag_ms=1000,
    )
    log = open_log(filesystem, config)
    for number in range(20):
        put(log, "key", f"value-{number}", timestamp=NOW_MS + number * 100)
    settle(log)
    assert new_cleaner(filesystem, NOW_MS).clean_filthiest([log]) is None
    cleaned = new_cleaner(filesystem, NOW_MS + 2000).clean_filthiest([log])
    assert cleaned is not None
    assert 5 < cleaned.end_offset <= 10
    young = [offset for offset, _, _ in content(log) if offset >= cleaned.end_offset]
    assert young == list(range(cleaned.end_offset, 20))


def test_memory_bounds_a_round_and_the_next_one_goes_on(filesystem: FaultyFilesystem) -> None:
    log = open_log(filesystem, COMPACT)
    for number in range(40):
        put(log, f"key-{number % 10}", f"value-{number}")
    settle(log)
    cleaner = new_cleaner(filesystem, dedupe_buffer_size=3 * ENTRY_BYTES)
    ends = []
    while cleaned := cleaner.clean_filthiest([log]):
        ends.append(cleaned.end_offset)
    assert ends == sorted(set(ends))
    assert (len(ends) > 5, ends[-1]) == (True, 40)
    assert [offset for offset, _, _ in content(log)] == list(range(30, 40))


def test_a_batch_larger_than_the_buffer(filesystem: FaultyFilesystem) -> None:
    config = LogConfig(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    log = open_log(filesystem, config)
    put(log, "large", "x" * 5000)
    put(log, "small", "y")
    put(log, "large", "z" * 6000)
    settle(log)
    assert new_cleaner(filesystem, io_buffer_size=100).clean_filthiest([log]) is not None
    assert content(log) == [(1, "small", "y"), (2, "large", "z" * 6000)]


def test_tombstones_go_after_their_retention(filesystem: FaultyFilesystem) -> None:
    log = open_log(filesystem, COMPACT)
    put(log, "a", "1")
    put(log, "b", "1")
    put(log, "a", None)
    settle(log)
    assert new_cleaner(filesystem).clean_filthiest([log]) is not None
    assert content(log) == [(1, "b", "1"), (2, "a", None)]
    put(log, "c", "1")
    settle(log)
    later = NOW_MS + DAY_MS
    assert new_cleaner(filesystem, later - 1).clean_filthiest([log]) is not None
    assert content(log) == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    put(log, "d", "1")
    settle(log)
    assert new_cleaner(filesystem, later).clean_filthiest([log]) is not None
    assert content(log) == [(1, "b", "1"), (3, "c", "1"), (4, "d", "1")]


def transaction(log: PartitionLog, key: str, value: str, kind: ControlType, sequence: int) -> None:
    put(
        log,
        key,
        value,
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    append_marker(log, kind, 7, 0)


def test_aborted_records_go_and_outdate_nothing(filesystem: FaultyFilesystem) -> None:
    log = open_log(filesystem, COMPACT)
    transaction(log, "a", "kept", ControlType.COMMIT, 0)
    transaction(log, "a", "aborted", ControlType.ABORT, 1)
    transaction(log, "b", "kept", ControlType.COMMIT, 2)
    settle(log)
    before = log.aborted_transactions(0, log.log_end_offset)
    assert before == [AbortedTransaction(7, 2, 3, 4)]
    assert new_cleaner(filesystem).clean_filthiest([log]) is not None
    assert content(log) == [(0, "a", "kept"), (4, "b", "kept")]
    assert log.aborted_transactions(0, log.log_end_offset) == before
    assert markers(log) == [1, 3, 5]


def test_markers_go_when_nothing_of_their_transaction_is_left(
    filesystem: FaultyFilesystem,
) -> None:
    log = open_log(filesystem, COMPACT)
    transaction(log, "a", "aborted", ControlType.ABORT, 0)
    transaction(log, "a", "outdated", ControlType.COMMIT, 1)
    transaction(log, "a", "kept", ControlType.COMMIT, 2)
    for now_ms, expected in (
        (NOW_MS, [1, 3, 5]),
        (NOW_MS, [1, 3, 5]),
        (NOW_MS + DAY_MS - 1, [1, 3, 5]),
        (NOW_MS + DAY_MS, [5]),
    ):
        put(log, "unrelated", "value")
        settle(log)
        assert new_cleaner(filesystem, now_ms).clean_filthiest([log]) is not None
        assert markers(log) == expected
    assert content(log)[0] == (4, "a", "kept")
    assert log.aborted_transactions(0, log.log_end_offset) == []


def markers(log: PartitionLog) -> list[int]:
    data = read_all(log)
    return [header.base_offset for _, header in iterate_headers(data) if header.is_control]


def test_nothing_past_an_open_transaction_is_compacted(filesystem: FaultyFilesystem) -> None:
    log = open_log(filesystem, COMPACT)
    for number in range(8):
        put(log, "a", f"{number}")
    put(log, "a", "open", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    for number in range(8):
        put(log, "a", f"{number}")
    settle(log)
    cleaned = new_cleaner(filesystem).clean_filthiest([log])
    assert cleaned is not None
    assert cleaned.end_offset <= 8
    assert [offset for offset, _, _ in content(log)][-9:] == list(range(8, 17))


def test_the_last_sequence_of_a_producer_survives_compaction_and_restart(
    filesystem: FaultyFilesystem,
) -> None:
    log = open_log(filesystem, COMPACT)
    for sequence in range(3):
        put(log, "a", "1", producer_id=9, producer_epoch=0, base_sequence=sequence)
    put(log, "a", "2")
    settle(log)
    assert new_cleaner(filesystem).clean_filthiest([log]) is not None
    assert content(log) == [(3, "a", "2")]
    log.close()
    for name in filesystem.list(DIRECTORY):
        if name.endswith(".snapshot"):
            filesystem.remove(f"{DIRECTORY}/{name}")
    again = open_log(filesystem, COMPACT)
    assert put(again, "b", "1", producer_id=9, producer_epoch=0, base_sequence=2) == 2
    assert put(again, "b", "1", producer_id=9, producer_epoch=0, base_sequence=3) == 4


def racing_cleaner(
    filesystem: FaultyFilesystem,
    on_work: Callable[[], object],
    after: int,
    io_buffer_size: int = 256,
) -> LogCleaner:
    """Does something else after this many pieces of work."""
    pieces = itertools.count()
    return LogCleaner(
        filesystem,
        lambda: NOW_MS,
        dedupe_buffer_size=1 << 20,
        io_buffer_size=io_buffer_size,
        on_work=lambda work_bytes: on_work() if next(pieces) == after else None,
    )


@pytest.mark.parametrize("after", range(30))
def test_what_truncation_leaves_stays_even_if_it_was_outdated(
    filesystem: FaultyFilesystem, after: int
) -> None:
    log = filled_log(filesystem)
    cleaner = racing_cleaner(filesystem, lambda: log.truncate_to(9), after)
    assert cleaner.clean_filthiest([log]) is None
    assert log.log_end_offset == 9
    latest = {key: offset for offset, key, _ in content(log)}
    swapped = len(content(log)) < 9
    assert swapped or latest == {"key-0": 8, "key-1": 5, "key-2": 6, "key-3": 7}
    assert cleaner.cleaned_offset(log) is None
    assert not [name for name in filesystem.list(DIRECTORY) if "cleaned" in name]


def test_a_truncation_in_progress_is_not_taken_for_damage(
    filesystem: FaultyFilesystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is already shorter, but the truncation is not counted yet."""
    log = filled_log(filesystem)
    base_offset = log.segments[-2].base_offset
    truncation = threading.Thread(target=log.truncate_to, args=(base_offset + 1,))
    is_short, is_met = threading.Event(), threading.Event()
    load_tail, count_of = Segment.load_tail, vars(PartitionLog)["truncations_count"].fget

    def load_slowly(segment: Segment) -> int:
        is_short.set()
        is_met.wait()
        return load_tail(segment)

    def count(log: PartitionLog) -> int:
        if is_short.is_set():
            is_met.set()
        return int(count_of(log))

    def truncate() -> None:
        truncation.start()
        is_short.wait()

    monkeypatch.setattr(Segment, "load_tail", load_slowly)
    monkeypatch.setattr(PartitionLog, "truncations_count", property(count))
    cleaner = racing_cleaner(filesystem, truncate, base_offset, io_buffer_size=0)
    assert cleaner.clean_filthiest([log]) is None
    truncation.join()
    assert log.log_end_offset == base_offset + 1 < 20
    assert cleaner.uncleanable_count == 0


@pytest.mark.parametrize("after", range(30))
def test_retention_beside_compaction(filesystem: FaultyFilesystem, after: int) -> None:
    log = filled_log(filesystem)
    cleaner = racing_cleaner(filesystem, lambda: log.delete_records_before(7), after)
    cleaner.clean_filthiest([log])
    assert log.log_start_offset == 7
    latest = {key: offset for offset, key, _ in content(log)}
    assert latest == {"key-0": 16, "key-1": 17, "key-2": 18, "key-3": 19}
    new_cleaner(filesystem).clean_filthiest([log])
    assert len(content(log)) == 4


def test_a_log_that_was_deleted_meanwhile_is_no_error(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    calls: list[int] = []

    def delete(work_bytes: int) -> None:
        if not calls:
            log.rename_for_deletion(f"{DIRECTORY}.deleted")
        calls.append(work_bytes)

    cleaner = LogCleaner(
        filesystem,
        lambda: NOW_MS,
        dedupe_buffer_size=1 << 20,
        io_buffer_size=256,
        on_work=delete,
    )
    assert cleaner.clean_filthiest([log]) is None
    cleaner.on_deleted(DIRECTORY, PARTITION)


def test_the_work_stops_when_it_is_told_to(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    before = content(log)
    cleaner = LogCleaner(
        filesystem,
        lambda: NOW_MS,
        dedupe_buffer_size=1 << 20,
        io_buffer_size=256,
        should_stop=lambda: True,
    )
    assert cleaner.clean_filthiest([log]) is None
    assert content(log) == before


def test_a_damaged_log_is_reported_and_not_rewritten(
    filesystem: FaultyFilesystem, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled_log(filesystem)
    before = read_all(log)
    filesystem.flip_bit(log.segments[1].path, 70)
    cleaner = new_cleaner(filesystem)
    with caplog.at_level(logging.ERROR):
        assert cleaner.clean_filthiest([log]) is None
    assert "is no longer compacted" in caplog.text
    assert len(read_all(log)) == len(before)
    assert cleaner.clean_filthiest([log]) is None
    cleaner.on_deleted(DIRECTORY, PARTITION)


def test_a_full_disk_leaves_the_log_as_it_was(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    before = content(log)
    filesystem.disk_full(50)
    with pytest.raises(ApiError, match="is full"):
        new_cleaner(filesystem).clean_filthiest([log])
    filesystem.disk_full(None)
    assert content(log) == before
    assert new_cleaner(filesystem).clean_filthiest([log]) is not None


def test_a_disk_that_fails_puts_the_directory_offline(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    filesystem.fail_reads(log.segments[1].path)
    with pytest.raises(StorageError, match="read error"):
        new_cleaner(filesystem).clean_filthiest([log])
    assert log.log_directory.failure is not None
    assert new_cleaner(filesystem).clean_filthiest([log]) is None


def test_truncation_makes_what_follows_dirty_again(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    cleaner = new_cleaner(filesystem)
    cleaner.clean_filthiest([log])
    cleaner.on_truncated(log, 30)
    assert cleaner.cleaned_offset(log) == 20
    cleaner.on_truncated(log, 12)
    assert cleaner.cleaned_offset(log) == 12
    cleaner.on_deleted(DIRECTORY, PARTITION)
    assert cleaner.cleaned_offset(log) is None


def test_a_damaged_checkpoint_means_compacting_anew(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    filesystem.write_atomically("/data/cleaner-offset-checkpoint", b"nonsense")
    cleaner = new_cleaner(filesystem)
    assert cleaner.cleaned_offset(log) is None
    assert cleaner.clean_filthiest([log]) is not None


@pytest.mark.parametrize("checkpoint", [3, 99])
def test_a_checkpoint_outside_the_log_counts_as_none(
    filesystem: FaultyFilesystem, checkpoint: int
) -> None:
    log = filled_log(filesystem)
    log.delete_records_before(6)
    assert cleanable_of(log, checkpoint, NOW_MS).first_dirty_offset == 6
    assert cleanable_of(log, 12, NOW_MS).first_dirty_offset == 12


def test_the_filthiest_log_comes_first(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    cleaner = new_cleaner(filesystem)
    cleaner.clean_filthiest([log])
    put(log, "key-1", "again")
    settle(log)
    filesystem.make_directory("/data/other-0")
    request = LoadRequest("/data/other-0", TopicPartition("other", 0), COMPACT, NOW_MS)
    other = open_partition_log(LogDirectory("/data", filesystem), request)
    for number in range(20):
        put(other, "key", f"value-{number}")
    settle(other)
    order = []
    while cleaned := cleaner.clean_filthiest([log, other]):
        order.append(cleaned.topic_partition)
    assert order == [TopicPartition("other", 0), PARTITION]


def test_neighbours_are_grouped_up_to_the_size_of_a_segment(filesystem: FaultyFilesystem) -> None:
    log = filled_log(filesystem)
    segments = log.segments[:-1]
    groups = group_segments(segments, LogConfig(segment_bytes=500), 20)
    sizes = [sum(segment.size for segment in group) for group in groups]
    assert [segment for group in groups for segment in group] == list(segments)
    assert 1 < len(groups) < len(segments)
    assert max(sizes) <= 500
    assert all(
        size + following[0].size > 500 for size, following in zip(sizes, groups[1:], strict=False)
    )
    assert group_segments(segments, LogConfig(segment_bytes=1), 20) == [[s] for s in segments]
    assert group_segments(segments, LogConfig(), 2**31 + 5)[-1] == [segments[-1]]
    assert group_segments([], COMPACT, 0) == []
