from uuid import UUID

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import TimestampType, iterate_headers, read_header
from ottla.storage.checkpoints import read_partition_metadata
from ottla.storage.config import LogConfig
from ottla.storage.errors import NotCached
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog

from .batches import (
    DIRECTORY,
    NOW_MS,
    append,
    open_log,
    produced,
    read_all,
    read_slice,
    values_of,
)

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=100)


def test_an_empty_log_has_no_files() -> None:
    filesystem = FaultyFilesystem()
    log = open_log(filesystem)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (0, 0, 0)
    assert filesystem.list(DIRECTORY) == []


@pytest.mark.parametrize("seed", range(20))
def test_whose_log_it_is_survives_a_kill_and_then_a_loss_of_power(seed: int) -> None:
    filesystem, topic_id = FaultyFilesystem(seed), UUID(int=7)
    killed = open_log(filesystem)
    killed.identify(topic_id)
    append(killed)
    log = open_log(filesystem, topic_id=topic_id)
    append(log)
    log.flush()
    filesystem.crash()
    assert read_partition_metadata(filesystem, DIRECTORY) == topic_id


def test_offsets_continue_from_batch_to_batch() -> None:
    log = open_log()
    assert append(log, b"a", b"b") == (0, 1, -1, False)
    assert append(log, b"c") == (2, 2, -1, False)
    assert log.log_end_offset == 3
    assert values_of(read_all(log)) == [b"a", b"b", b"c"]


def test_offset_and_epoch_are_written_into_the_batch() -> None:
    log = open_log()
    append(log)
    records, header = produced(b"b")
    log.append_as_leader(records, header, 7, NOW_MS)
    assert read_header(records).base_offset == 1
    assert read_header(records).partition_leader_epoch == 7
    assert read_all(log, 1) == bytes(records)
    assert log.leader_epochs.entries == ((0, 0), (7, 1))


def test_a_read_in_the_middle_of_a_batch_gives_all_of_it() -> None:
    log = open_log()
    append(log, b"a", b"b", b"c")
    slice_ = read_slice(log, 1, 1000, 3)
    assert slice_.first_offset == 0
    assert values_of(slice_.read()) == [b"a", b"b", b"c"]


def test_a_read_gives_one_batch_even_if_it_is_too_large() -> None:
    log = open_log()
    append(log, b"a" * 100)
    append(log, b"b")
    assert values_of(read_slice(log, 0, 1, 2).read()) == [b"a" * 100]


def test_a_read_gives_whole_batches_up_to_the_size() -> None:
    log = open_log()
    size = sum(len(append_and_read(log, value)) for value in (b"a", b"b"))
    append(log, b"c")
    assert values_of(read_slice(log, 0, size, 3).read()) == [b"a", b"b"]
    assert values_of(read_slice(log, 0, size + 10, 3).read()) == [b"a", b"b"]


def append_and_read(log: PartitionLog, value: bytes) -> bytes:
    return read_all(log, append(log, value).first_offset)


def test_a_read_ends_before_the_limit() -> None:
    log = open_log()
    append(log, b"a")
    append(log, b"b", b"c")
    assert values_of(read_slice(log, 0, 1000, 3).read()) == [b"a", b"b", b"c"]
    assert values_of(read_slice(log, 0, 1000, 2).read()) == [b"a"]
    assert values_of(read_slice(log, 0, 1000, 1).read()) == [b"a"]
    assert log.read(1, 1000, 2) is None
    assert log.read(1, 1000, 1) is None
    assert log.read(3, 1000, 3) is None


def test_a_limit_in_an_earlier_segment() -> None:
    log = open_log(config=SMALL)
    for index in range(20):
        append(log, b"%d" % index)
    for limit in range(1, 20):
        data, offset, hint = b"", 0, None
        while (part := log.read(offset, 150, limit, hint)) is not None:
            data += part.read()
            offset, hint = part.next_offset, part.hint
        assert values_of(data) == [b"%d" % index for index in range(limit)]


@pytest.mark.parametrize("offset", [-1, 2])
def test_offsets_out_of_range_are_refused(offset: int) -> None:
    log = open_log()
    append(log)
    with pytest.raises(ApiError, match="is not in") as refusal:
        log.read(offset, 1000, 1)
    assert refusal.value.code is ErrorCode.offset_out_of_range


def test_segments_roll_by_size() -> None:
    log = open_log(config=SMALL)
    for _ in range(10):
        append(log, b"x" * 50)
    assert len(log.segments) > 2
    assert all(segment.size <= 300 for segment in log.segments)
    assert values_of(read_all(log)) == [b"x" * 50] * 10
    assert values_of(read_all(log, size_max=100)) == [b"x" * 50] * 10


def test_segments_roll_by_time() -> None:
    log = open_log(config=LogConfig(segment_ms=1000))
    append(log, timestamp=NOW_MS)
    append(log, timestamp=NOW_MS + 1000)
    assert len(log.segments) == 1
    append(log, timestamp=NOW_MS + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_segments_roll_when_the_index_is_full() -> None:
    log = open_log(config=LogConfig(segment_index_bytes=40, index_interval_bytes=0))
    for _ in range(8):
        append(log)
    assert len(log.segments) > 1
    assert values_of(read_all(log)) == [b"value"] * 8


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = open_log(config=LogConfig(segment_bytes=100))
    with pytest.raises(ApiError) as refusal:
        append(log, b"x" * 100)
    assert refusal.value.code is ErrorCode.record_list_too_large
    assert log.log_end_offset == 0


def test_log_append_time() -> None:
    log = open_log(config=LogConfig(message_timestamp_type="LogAppendTime"))
    assert append(log, timestamp=5, now_ms=NOW_MS + 1).append_time_ms == NOW_MS + 1
    (_, header) = next(iterate_headers(read_all(log)))
    assert header.timestamp_type is TimestampType.APPEND
    assert header.max_timestamp == NOW_MS + 1


@pytest.mark.parametrize("timestamp", [NOW_MS - 11, NOW_MS + 21])
def test_timestamps_out_of_bounds_are_refused(timestamp: int) -> None:
    config = LogConfig(message_timestamp_before_max_ms=10, message_timestamp_after_max_ms=20)
    log = open_log(config=config)
    append(log, timestamp=NOW_MS - 10)
    append(log, timestamp=NOW_MS + 20)
    append(log, timestamp=-1)
    with pytest.raises(ApiError) as refusal:
        append(log, timestamp=timestamp)
    assert refusal.value.code is ErrorCode.invalid_timestamp
    assert log.log_end_offset == 3


def test_a_retry_of_an_idempotent_producer_is_recognized() -> None:
    log = open_log()
    options = {"producer_id": 9, "producer_epoch": 0}
    assert append(log, b"a", base_sequence=0, **options) == (0, 0, -1, False)
    assert append(log, b"b", base_sequence=1, **options) == (1, 1, -1, False)
    assert append(log, b"a", base_sequence=0, **options) == (0, 0, -1, True)
    with pytest.raises(ApiError) as refusal:
        append(log, b"d", base_sequence=3, **options)
    assert refusal.value.code is ErrorCode.out_of_order_sequence_number
    assert log.log_end_offset == 2


def test_offsets_by_timestamp() -> None:
    log = open_log(config=SMALL)
    for index in range(30):
        append(log, b"a", b"b", timestamp=NOW_MS + 10 * index)
    assert log.offset_for_timestamp(0) == (0, NOW_MS, 0)
    for index in range(30):
        assert log.offset_for_timestamp(NOW_MS + 10 * index) == (2 * index, NOW_MS + 10 * index, 0)
        found = log.offset_for_timestamp(NOW_MS + 10 * index - 5)
        assert found == (2 * index, NOW_MS + 10 * index, 0)
    assert log.offset_for_timestamp(NOW_MS + 291) is None
    assert log.offset_of_max_timestamp() == (58, NOW_MS + 290, 0)


def test_the_first_offset_with_the_largest_timestamp() -> None:
    log = open_log()
    append(log, timestamp=NOW_MS)
    append(log, timestamp=NOW_MS + 5)
    append(log, timestamp=NOW_MS + 5)
    append(log, timestamp=NOW_MS + 1)
    assert log.offset_of_max_timestamp() == (1, NOW_MS + 5, 0)
    assert open_log().offset_of_max_timestamp() is None


def test_a_flush_covers_what_was_appended_before() -> None:
    log = open_log(config=SMALL)
    for _ in range(10):
        append(log, b"x" * 50)
    assert log.flushed_offset == 0
    assert log.flush() == 10
    append(log)
    assert log.flushed_offset == 10


def test_a_cold_read_can_be_declined() -> None:
    filesystem = FaultyFilesystem()
    log = open_log(filesystem)
    append(log, b"a")
    append(log, b"b")
    filesystem.evict(log.segments[0].path)
    with pytest.raises(NotCached):
        log.read(1, 1000, 2, cached_only=True)
    assert values_of(read_slice(log, 1, 1000, 2).read()) == [b"b"]


def test_a_hint_leads_from_segment_to_segment() -> None:
    log = open_log(config=SMALL)
    for index in range(10):
        append(log, b"%d" % index * 50)
    first = read_slice(log, 0, 10_000, 10)
    second = read_slice(log, first.next_offset, 10_000, 10, first.hint)
    assert second.first_offset == log.segments[1].base_offset
    assert second.file.path == log.segments[1].path


def test_a_full_disk_refuses_the_append_and_leaves_the_log_as_it_was() -> None:
    filesystem = FaultyFilesystem()
    log = open_log(filesystem)
    append(log, b"a")
    filesystem.disk_full()
    with pytest.raises(ApiError) as refusal:
        append(log, b"b")
    assert refusal.value.code is ErrorCode.kafka_storage_error
    assert values_of(read_all(log)) == [b"a"]
    filesystem.disk_full(None)
    assert append(log, b"c").first_offset == 1
    assert values_of(read_all(log)) == [b"a", b"c"]
