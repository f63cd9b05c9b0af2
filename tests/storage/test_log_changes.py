"""Truncation, deletion, retention, transactions and replica fetches."""

import dataclasses

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import iterate_headers
from ottla.records.decoder import ControlType
from ottla.records.errors import CorruptBatch
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog

from .batches import (
    DIRECTORY,
    NOW_MS,
    append,
    append_marker,
    offset_of,
    open_log,
    read_all,
    read_slice,
    values_of,
)

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
TRANSACTION = {"producer_epoch": 0, "transactional": True}


def filled_log(
    count: int = 12, config: LogConfig = SMALL, disk: FaultyFilesystem | None = None
) -> PartitionLog:
    log = open_log(disk or FaultyFilesystem(), config)
    for index in range(count):
        append(log, b"%02d" % index * 20, timestamp=NOW_MS + index, leader_epoch=index // 3)
    log.high_watermark = log.log_end_offset
    return log


def test_truncation_takes_epochs_and_watermark_along() -> None:
    log = filled_log()
    log.flush()
    log.truncate_to(5)
    assert log.log_end_offset == log.flushed_offset == log.high_watermark == 5
    assert log.leader_epochs.entries == ((0, 0), (1, 3))
    assert values_of(read_all(log)) == [b"%02d" % index * 20 for index in range(5)]
    assert offset_of(log.offset_of_max_timestamp()) == 4
    assert append(log, b"new").first_offset == 5


def test_truncation_in_the_middle_of_a_batch_removes_all_of_it() -> None:
    log = open_log()
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    log.truncate_to(2)
    assert log.log_end_offset == 1


def test_truncation_past_the_end_does_nothing() -> None:
    log = filled_log()
    log.truncate_to(12)
    log.truncate_to(100)
    assert log.log_end_offset == 12


def test_truncation_past_the_end_removes_epochs_without_batches() -> None:
    """Epochs of leaders that wrote nothing, which no other replica knows."""
    log = filled_log()
    log.leader_epochs.assign(9, 12)
    log.truncate_to(12)
    assert log.leader_epochs.entries == ((0, 0), (1, 3), (2, 6), (3, 9))


def test_truncation_forgets_the_sequences_of_what_is_gone() -> None:
    log = open_log(config=SMALL)
    for index in range(8):
        append(log, b"x" * 60, producer_id=5, producer_epoch=0, base_sequence=index)
    log.truncate_to(6)
    retry = append(log, b"x" * 60, producer_id=5, producer_epoch=0, base_sequence=6)
    assert retry == (6, 6, -1, False)


def test_truncation_reopens_an_aborted_transaction() -> None:
    log = open_log()
    append(log, producer_id=5, base_sequence=0, **TRANSACTION)
    append_marker(log, ControlType.ABORT, 5, 0)
    assert len(log.aborted_transactions(0, 2)) == 1
    log.truncate_to(1)
    assert log.aborted_transactions(0, 2) == []
    assert log.last_stable_offset(1) == 0


def test_a_hint_from_before_a_truncation_does_no_harm() -> None:
    log = filled_log()
    hint = read_slice(log, 0, 150, 12).hint
    log.truncate_to(0)
    for _ in range(5):
        append(log, b"a", b"b")
    found = read_slice(log, hint.offset, 1000, 10, hint)
    assert values_of(found.read())[:2] == [b"a", b"b"]


def test_starting_anew_is_remembered() -> None:
    disk = FaultyFilesystem()
    log = filled_log(disk=disk)
    log.truncate_fully_and_start_at(100)
    assert log.size == 0
    log.flush()
    log = open_log(disk, SMALL)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)


def test_a_log_that_starts_anew_knows_no_leader_epoch() -> None:
    """Otherwise the leader, asked where that epoch ends, would send this replica back again."""
    disk = FaultyFilesystem()
    log = filled_log(disk=disk)
    log.leader_epochs.assign(3, 12)
    log.flush_leader_epochs()
    assert log.leader_epochs.entries
    log.truncate_fully_and_start_at(100)
    assert log.leader_epochs.entries == ()
    disk.crash()
    log = open_log(disk, SMALL)
    assert log.leader_epochs.entries == ()


def test_deleted_records_are_out_of_range() -> None:
    log = filled_log()
    assert log.delete_records_before(7) == 7
    assert log.delete_records_before(3) == 7
    assert log.segments[0].base_offset > 0
    with pytest.raises(ApiError) as refusal:
        log.read(6, 1000, 12)
    assert refusal.value.code is ErrorCode.offset_out_of_range
    with pytest.raises(ApiError):
        log.delete_records_before(13)
    assert values_of(read_all(log))[-1] == b"11" * 20
    assert offset_of(log.offset_for_timestamp(0)) == 7


def test_deleting_everything_keeps_the_end() -> None:
    log = filled_log()
    log.delete_records_before(12)
    assert (log.log_start_offset, log.log_end_offset) == (12, 12)
    assert append(log).first_offset == 12


def test_a_slice_stays_readable_after_its_segment_is_gone() -> None:
    log = filled_log()
    part = read_slice(log, 0, 1000, 12)
    log.delete_records_before(12)
    assert values_of(part.read())[0] == b"00" * 20


def test_retention_by_size() -> None:
    log = filled_log(config=dataclasses.replace(SMALL, retention_bytes=500))
    count = log.delete_expired(NOW_MS)
    assert count > 0
    assert log.size >= 500
    assert log.size - log.segments[0].size < 500
    assert log.log_start_offset == log.segments[0].base_offset


def test_retention_by_time_goes_by_the_largest_timestamp() -> None:
    log = filled_log(config=dataclasses.replace(SMALL, retention_ms=1000))
    second = log.segments[1]
    assert log.delete_expired(NOW_MS + 1000) == 0
    assert log.delete_expired(NOW_MS + 1001 + second.largest.timestamp - NOW_MS) == 2
    assert log.delete_expired(NOW_MS + 10_000) > 0
    assert (log.log_start_offset, log.log_end_offset, log.size) == (12, 12, 0)
    assert log.delete_expired(NOW_MS + 10_000) == 0


@pytest.mark.parametrize("ending", ["close", "crash"])
@pytest.mark.parametrize("seed", range(5))
def test_offsets_go_on_after_retention_took_everything(ending: str, seed: int) -> None:
    disk = FaultyFilesystem(seed)
    log = filled_log(disk=disk, config=dataclasses.replace(SMALL, retention_ms=1))
    log.flush()
    log.delete_expired(NOW_MS + 1000)
    assert (log.log_start_offset, log.log_end_offset) == (12, 12)
    getattr(log if ending == "close" else disk, ending)()
    log = open_log(disk, SMALL, clean_shutdown=ending == "close")
    assert append(log, b"next").first_offset == 12


def test_retention_keeps_what_is_not_committed() -> None:
    log = filled_log(config=dataclasses.replace(SMALL, retention_ms=0))
    log.high_watermark = log.segments[1].base_offset
    assert log.delete_expired(NOW_MS + 10_000) == 1


def test_a_compacted_topic_has_no_retention() -> None:
    config = dataclasses.replace(SMALL, cleanup_policy=("compact",), retention_ms=0)
    log = filled_log(config=config)
    assert log.delete_expired(NOW_MS + 10_000) == 0
    log.delete_records_before(log.segments[1].base_offset)
    assert log.delete_expired(NOW_MS + 10_000) == 0


def test_a_new_configuration_is_obeyed_at_once() -> None:
    log = open_log()
    append(log, b"a" * 50)
    log.configure(dataclasses.replace(LogConfig(), segment_bytes=150))
    append(log, b"b" * 50)
    assert len(log.segments) == 2


def test_last_stable_offset_and_aborted_transactions() -> None:
    log = open_log(config=SMALL)
    append(log, b"a", producer_id=1, base_sequence=0, **TRANSACTION)
    append(log, b"b", producer_id=2, base_sequence=0, **TRANSACTION)
    append(log, b"c")
    assert log.last_stable_offset(3) == 0
    append_marker(log, ControlType.COMMIT, 1, 0)
    assert log.last_stable_offset(3) == 0
    assert log.last_stable_offset(4) == 1
    append_marker(log, ControlType.ABORT, 2, 0)
    assert log.last_stable_offset(5) == 5
    (aborted,) = log.aborted_transactions(0, 5)
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (2, 1, 4)
    assert log.aborted_transactions(5, 6) == []


def test_aborted_transactions_are_in_offset_order() -> None:
    log = open_log(config=SMALL)
    for producer_id in (1, 2, 3):
        append(log, b"x" * 80, producer_id=producer_id, base_sequence=0, **TRANSACTION)
    for producer_id in (3, 1, 2):
        append_marker(log, ControlType.ABORT, producer_id, 0)
    found = log.aborted_transactions(0, log.log_end_offset)
    assert [transaction.first_offset for transaction in found] == [0, 1, 2]


def test_a_follower_becomes_a_copy() -> None:
    leader = filled_log()
    append(leader, b"a", producer_id=1, base_sequence=0, **TRANSACTION)
    append_marker(leader, ControlType.ABORT, 1, 0)
    follower = open_log(config=SMALL)
    offset = 0
    while (part := leader.read(offset, 350, leader.log_end_offset)) is not None:
        follower.append_as_follower(memoryview(part.read()))
        offset = follower.log_end_offset
    assert read_all(follower) == read_all(leader)
    assert follower.leader_epochs.entries == leader.leader_epochs.entries
    assert follower.aborted_transactions(0, 20) == leader.aborted_transactions(0, 20)
    assert [s.base_offset for s in follower.segments] == [s.base_offset for s in leader.segments]


def test_a_follower_leaves_out_half_a_batch() -> None:
    leader = filled_log(3)
    data = read_all(leader)
    follower = open_log()
    assert follower.append_as_follower(memoryview(data[:-1])).last_offset == 1
    assert follower.append_as_follower(memoryview(b"")) == (2, 1, -1, False)


def test_a_follower_refuses_what_does_not_continue_its_log() -> None:
    data = read_all(filled_log(3))
    follower = open_log()
    follower.append_as_follower(memoryview(data))
    with pytest.raises(ApiError) as refusal:
        follower.append_as_follower(memoryview(data))
    assert refusal.value.code is ErrorCode.offset_out_of_range
    assert follower.log_end_offset == 3


def test_a_follower_refuses_damaged_batches() -> None:
    data = bytearray(read_all(filled_log(3)))
    (second, _) = list(iterate_headers(data))[1]
    data[second + 70] ^= 1
    follower = open_log()
    with pytest.raises(CorruptBatch):
        follower.append_as_follower(memoryview(data))
    assert follower.log_end_offset == 0


def test_a_marker_of_an_old_epoch_is_refused() -> None:
    log = open_log()
    append(log, producer_id=1, producer_epoch=3, base_sequence=0, transactional=True)
    with pytest.raises(ApiError) as refusal:
        append_marker(log, ControlType.ABORT, 1, 2)
    assert refusal.value.code is ErrorCode.invalid_producer_epoch
    assert log.log_end_offset == 1


def test_a_failed_sync_is_never_forgotten() -> None:
    disk = FaultyFilesystem()
    log = open_log(disk)
    append(log)
    disk.fail_next_sync()
    for _ in range(2):
        with pytest.raises(StorageError, match="injected sync failure"):
            log.flush()
    with pytest.raises(StorageError):
        append(log)
    assert log.flushed_offset == 0


def test_a_full_disk_at_a_roll_refuses_the_append() -> None:
    disk = FaultyFilesystem()
    log = filled_log(disk=disk)
    end = log.log_end_offset
    disk.disk_full()
    for _ in range(3):
        with pytest.raises(ApiError):
            append(log, b"x" * 200)
    disk.disk_full(None)
    assert append(log, b"x" * 200).first_offset == end
    assert values_of(read_all(log))[-1] == b"x" * 200
    log.close()
    log = open_log(disk, SMALL, clean_shutdown=True)
    assert log.log_end_offset == end + 1


def test_a_closed_log_refuses_appends() -> None:
    log = filled_log()
    log.close()
    with pytest.raises(ApiError):
        append(log)


def test_a_renamed_log_leaves_its_place() -> None:
    disk = FaultyFilesystem()
    log = filled_log(disk=disk)
    log.rename_for_deletion("/data/gone")
    assert not disk.exists(DIRECTORY)
    assert log.flush() == 0
    with pytest.raises(ApiError) as refusal:
        log.read(0, 1000, 12)
    assert refusal.value.code is ErrorCode.unknown_topic_or_partition
    assert log.log_directory.failure is None


def test_truncation_into_a_batch_that_reaches_before_the_log_start() -> None:
    log = open_log()
    append(log, b"a", b"b", b"c")
    log.delete_records_before(1)
    log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (1, 1, 0)


def test_a_flush_makes_a_truncation_durable() -> None:
    disk = FaultyFilesystem()
    log = filled_log(disk=disk)
    log.flush()
    log.truncate_to(10)
    log.flush()
    disk.crash()
    assert open_log(disk, SMALL).log_end_offset == 10
