import pytest

from ottla.records.decoder import ControlType
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptLog, StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog

from .batches import (
    DIRECTORY,
    append,
    append_marker,
    batch_at,
    offset_of,
    open_log,
    read_all,
    read_slice,
    values_of,
)

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)


@pytest.fixture
def disk() -> FaultyFilesystem:
    return FaultyFilesystem()


def filled_log(disk: FaultyFilesystem, count: int = 12) -> PartitionLog:
    log = open_log(disk, CONFIG)
    for index in range(count):
        append(log, b"%02d" % index * 20, timestamp=1_700_000_000_000 + index, leader_epoch=index)
    log.flush()
    return log


def damage_tail(disk: FaultyFilesystem, log: PartitionLog, data: bytes) -> None:
    file = disk.open(log.segments[-1].path)
    file.append(data)
    file.sync()


@pytest.mark.parametrize(
    "tail", [b"\0" * 10, b"\0" * 200, b"\xff" * 30, b"\x01\x02" * 100], ids=len
)
def test_a_torn_tail_is_cut_off(disk: FaultyFilesystem, tail: bytes) -> None:
    log = filled_log(disk)
    expected = read_all(log)
    damage_tail(disk, log, tail)
    log = open_log(disk, CONFIG)
    assert log.log_end_offset == 12
    assert read_all(log) == expected
    assert append(log).first_offset == 12


def test_half_a_batch_is_cut_off(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    data = read_all(log)
    damage_tail(disk, log, read_all(log, 11)[:-5])
    log = open_log(disk, CONFIG)
    assert read_all(log) == data


def test_damage_past_the_recovery_point_drops_what_follows(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    second = log.segments[1]
    disk.flip_bit(second.path, 80)
    log = open_log(disk, CONFIG, recovery_point=second.base_offset)
    assert log.log_end_offset == second.base_offset
    assert [name for name in disk.list(DIRECTORY) if name.endswith(".log")] == [
        "00000000000000000000.log",
        f"{second.base_offset:020d}.log",
    ]
    assert append(log, leader_epoch=20).first_offset == second.base_offset


def test_a_segment_behind_one_that_lost_its_end_is_dropped(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    first, second = log.segments[:2]
    lost = batch_at(first, second.base_offset - 1)
    disk.open(first.path).truncate(lost.position)
    log = open_log(disk, CONFIG)
    assert log.log_end_offset == lost.base_offset
    assert [segment.base_offset for segment in log.segments] == [0]


@pytest.mark.parametrize("position", [7, 11, 16, 80])
def test_damage_past_the_recovery_point_costs_one_batch_if_no_write_was_lost(
    disk: FaultyFilesystem, position: int
) -> None:
    log = filled_log(disk)
    second = log.segments[1]
    damaged = second.base_offset + 1
    disk.flip_bit(second.path, batch_at(second, damaged).position + position, 3)
    damage_tail(disk, log, b"\0" * 30)
    log = open_log(disk, CONFIG, pass_over_damage=True, writes_survived=True)
    (found,) = log.damage
    assert (found.first_offset, found.next_offset) == (damaged, damaged + 1)
    assert log.log_end_offset == 12
    assert not log.may_lack_synced
    assert values_of(read_all(log, damaged + 1)) == [
        b"%02d" % index * 20 for index in range(damaged + 1, 12)
    ]
    assert append(log, leader_epoch=20).first_offset == 12


def test_the_leader_epochs_of_all_segments_are_made_anew_if_their_checkpoint_is_damaged(
    disk: FaultyFilesystem,
) -> None:
    log = filled_log(disk)
    entries = log.leader_epochs.entries
    log.close()
    disk.flip_bit(f"{DIRECTORY}/leader-epoch-checkpoint", 6)
    log = open_log(disk, CONFIG, recovery_point=12, clean_shutdown=True)
    assert log.leader_epochs.entries == entries


def test_damage_before_the_recovery_point_is_reported(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    last = log.segments[-1]
    disk.flip_bit(last.path, 80)
    with pytest.raises(CorruptLog, match="checksum") as report:
        open_log(disk, CONFIG, recovery_point=12)
    assert report.value.path == last.path
    assert report.value.offset == last.base_offset
    assert report.value.position == 0


def test_segments_before_the_recovery_point_are_not_read(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    path = log.segments[0].path
    recovery_point = log.segments[-1].base_offset
    disk.fail_reads(path, 1000)
    assert open_log(disk, CONFIG, recovery_point=recovery_point).log_end_offset == 12


def test_what_was_recovered_after_a_failed_sync_survives_a_power_loss(
    disk: FaultyFilesystem,
) -> None:
    """The process dies but the machine keeps running: the cache has what the disk lacks."""
    log = filled_log(disk, count=1)
    append(log, b"never acknowledged")
    disk.fail_next_sync()
    with pytest.raises(StorageError, match="sync failure"):
        log.flush()
    disk.kill()
    log = open_log(disk, CONFIG, recovery_point=1)
    expected = read_all(log)
    assert log.flushed_offset == 2
    disk.crash()
    assert read_all(open_log(disk, CONFIG, recovery_point=1)) == expected


def test_after_a_clean_shutdown_only_the_end_is_read(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    log.close()
    for segment in log.segments[:-1]:
        disk.fail_reads(segment.path, 1000)
    log = open_log(disk, CONFIG, clean_shutdown=True)
    assert log.log_end_offset == 12
    assert len(log.log_directory.open_files) == 1


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_indexes_that_are_gone_are_no_loss(
    disk: FaultyFilesystem, suffix: str, clean_shutdown: bool
) -> None:
    log = filled_log(disk)
    log.close()
    expected = read_all(open_log(disk, CONFIG, clean_shutdown=True))
    for name in disk.list(DIRECTORY):
        if name.endswith(suffix):
            disk.remove(f"{DIRECTORY}/{name}")
    log = open_log(disk, CONFIG, recovery_point=12, clean_shutdown=clean_shutdown)
    assert read_all(log) == expected
    assert log.log_end_offset == 12


def test_indexes_of_synced_segments_are_made_anew(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    log.close()
    sizes = {name: disk.size(f"{DIRECTORY}/{name}") for name in disk.list(DIRECTORY)}
    for name in sizes:
        if name.endswith(("index", "timeindex")):
            disk.remove(f"{DIRECTORY}/{name}")
    open_log(disk, CONFIG, recovery_point=12).close()
    assert {name: disk.size(f"{DIRECTORY}/{name}") for name in disk.list(DIRECTORY)} == sizes


def test_leader_epochs_are_found_in_the_batches(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    epochs = log.leader_epochs.entries
    assert not disk.exists(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert open_log(disk, CONFIG).leader_epochs.entries == epochs


def test_producers_are_found_in_the_batches(disk: FaultyFilesystem) -> None:
    log = open_log(disk, CONFIG)
    for index in range(12):
        append(log, b"x" * 50, producer_id=5, producer_epoch=1, base_sequence=index, timestamp=-1)
    log.flush()
    log = open_log(disk, CONFIG)
    retry = append(log, b"x" * 50, producer_id=5, producer_epoch=1, base_sequence=11)
    assert retry == (11, 11, -1, True)
    assert append(log, producer_id=5, producer_epoch=1, base_sequence=12).duplicate is False


def test_aborted_transactions_are_found_in_the_batches(disk: FaultyFilesystem) -> None:
    log = open_log(disk, CONFIG)
    options = {"producer_id": 5, "producer_epoch": 1, "transactional": True}
    append(log, b"a" * 200, base_sequence=0, **options)
    append(log, b"b" * 200, base_sequence=1, **options)
    append_marker(log, ControlType.ABORT, 5, 1)
    append(log, b"c", base_sequence=2, **options)
    aborted = log.aborted_transactions(0, 10)
    log.flush()
    log = open_log(disk, CONFIG)
    assert log.aborted_transactions(0, 10) == aborted
    assert log.last_stable_offset(4) == 3


@pytest.mark.parametrize("seed", range(10))
def test_a_power_loss_after_an_orderly_stop_leaves_aborted_transactions_known(seed: int) -> None:
    disk = FaultyFilesystem(seed)
    log = open_log(disk, CONFIG)
    log.flush()
    append(log, producer_id=5, producer_epoch=1, base_sequence=0, transactional=True)
    append_marker(log, ControlType.ABORT, 5, 1)
    aborted = log.aborted_transactions(0, 10)
    log.close()
    disk.crash()
    log = open_log(disk, CONFIG, clean_shutdown=True)
    assert log.aborted_transactions(0, 10) == aborted


def test_aborted_transactions_that_were_indexed_anew_survive_a_power_loss(
    disk: FaultyFilesystem,
) -> None:
    log = open_log(disk, CONFIG)
    append(log, producer_id=5, producer_epoch=1, base_sequence=0, transactional=True)
    append_marker(log, ControlType.ABORT, 5, 1)
    aborted = log.aborted_transactions(0, 2)
    while len(log.segments) < 3:
        append(log)
    log.flush()
    end = log.log_end_offset
    log = open_log(disk, CONFIG, recovery_point=end, checks_all=True)
    assert log.aborted_transactions(0, 2) == aborted
    disk.crash()
    log = open_log(disk, CONFIG, recovery_point=end)
    assert log.aborted_transactions(0, 2) == aborted


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_a_segment_that_was_emptied_is_not_indexed_as_before(
    disk: FaultyFilesystem, clean_shutdown: bool
) -> None:
    log = filled_log(disk)
    log.close()
    index_path = f"{DIRECTORY}/{log.segments[-1].base_offset:020d}.index"
    entries = disk.read_bytes(index_path)
    log = open_log(disk, CONFIG, clean_shutdown=True)
    base_offset = log.segments[-1].base_offset
    log.truncate_to(base_offset)
    log.close()
    file = disk.open(index_path)  # As if the power had failed before the index was truncated.
    file.append(entries)
    log = open_log(disk, CONFIG, recovery_point=base_offset, clean_shutdown=clean_shutdown)
    for index in range(12 - base_offset):
        assert append(log, b"%02d" % index * 20, leader_epoch=20).first_offset == (
            base_offset + index
        )
    for offset in range(base_offset, 12):
        assert read_slice(log, offset, 1, 12).first_offset == offset


def test_a_log_start_past_the_end_begins_an_empty_log(disk: FaultyFilesystem) -> None:
    filled_log(disk)
    log = open_log(disk, CONFIG, log_start_offset=50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)
    assert append(log, b"a").first_offset == 50
    log.flush()
    log = open_log(disk, CONFIG, log_start_offset=50)
    assert values_of(read_all(log)) == [b"a"]


def test_leftovers_are_removed(disk: FaultyFilesystem) -> None:
    log = filled_log(disk)
    log.close()
    before = disk.list(DIRECTORY)
    for name in ("00000000000000000000.log.deleted", "x.tmp", "00000000000000000099.index"):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    open_log(disk, CONFIG, clean_shutdown=True)
    assert disk.list(DIRECTORY) == before


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["deleted", "truncated", "empty", "garbage"])
def test_a_damaged_index_hides_nothing_after_a_clean_shutdown(
    disk: FaultyFilesystem, suffix: str, damage: str
) -> None:
    log = filled_log(disk)
    data = read_all(log)
    log.close()
    for name in disk.list(DIRECTORY):
        if name.endswith(suffix):
            path = f"{DIRECTORY}/{name}"
            content = disk.read_bytes(path)
            disk.remove(path)
            if damage != "deleted":
                file = disk.open(path, create=True)
                file.append({"truncated": content[:-3], "empty": b""}.get(damage, b"\xff" * 24))
    log = open_log(disk, CONFIG, recovery_point=12, clean_shutdown=True)
    assert log.log_end_offset == 12
    assert read_all(log) == data
    for offset in range(12):
        found = log.offset_for_timestamp(1_700_000_000_000 + offset)
        assert offset_of(found) == offset
        assert read_slice(log, offset, 1, 12).first_offset == offset
    assert offset_of(log.offset_of_max_timestamp()) == 11
    assert append(log, leader_epoch=20).first_offset == 12
    log.close()


def test_orderly_stops_leave_one_producer_snapshot(disk: FaultyFilesystem) -> None:
    for _ in range(4):
        log = open_log(disk, clean_shutdown=True)
        append(log, b"value")
        log.close()
    open_log(disk, clean_shutdown=True)
    snapshots = [name for name in disk.list(DIRECTORY) if name.endswith(".snapshot")]
    assert snapshots == ["00000000000000000004.snapshot"]
