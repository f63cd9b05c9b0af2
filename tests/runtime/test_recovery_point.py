import pytest

from ottla.raft.log import OffsetAndEpoch
from ottla.runtime.recovery_point import RECOVERY_POINT, RecoveryPoint
from ottla.storage.faulty_filesystem import FaultyFilesystem

PATH = f"/log/{RECOVERY_POINT}"


@pytest.fixture
def disk() -> FaultyFilesystem:
    disk = FaultyFilesystem(seed=1)
    disk.make_directory("/log")
    return disk


def read(disk: FaultyFilesystem) -> OffsetAndEpoch | None:
    return RecoveryPoint(disk, "/log").reached


def test_a_new_log_has_reached_nothing(disk: FaultyFilesystem) -> None:
    assert read(disk) == OffsetAndEpoch(0, 0)


def test_a_process_that_was_killed_leaves_it_exact(disk: FaultyFilesystem) -> None:
    point = RecoveryPoint(disk, "/log")
    for offset in range(1, 50):
        point.note(OffsetAndEpoch(offset, offset // 10))
        assert read(disk) == OffsetAndEpoch(offset, offset // 10)
    disk.kill()
    assert read(disk) == OffsetAndEpoch(49, 4)


@pytest.mark.parametrize("seed", range(20))
def test_a_loss_of_power_leaves_one_that_was_reached_and_never_less_than_was_synced(
    seed: int,
) -> None:
    disk = FaultyFilesystem(seed)
    disk.make_directory("/log")
    point = RecoveryPoint(disk, "/log")
    point.note(OffsetAndEpoch(7, 1))
    point.sync()
    for offset in range(8, 8 + seed):
        point.note(OffsetAndEpoch(offset, 1))
    disk.crash()
    reached = read(disk)
    assert reached is not None
    assert 7 <= reached.offset < 8 + max(seed, 1)


@pytest.mark.parametrize("seed", range(20))
def test_what_was_taken_back_stays_so_after_a_loss_of_power(seed: int) -> None:
    disk = FaultyFilesystem(seed)
    disk.make_directory("/log")
    point = RecoveryPoint(disk, "/log")
    for offset in range(1, 30):
        point.note(OffsetAndEpoch(offset, 1))
    point.go_back(OffsetAndEpoch(5, 1))
    disk.crash()
    assert read(disk) == OffsetAndEpoch(5, 1)
    point = RecoveryPoint(disk, "/log")
    point.note(OffsetAndEpoch(6, 2))
    point.close()
    disk.crash()
    assert read(disk) == OffsetAndEpoch(6, 2)


def test_a_file_that_says_nothing_is_not_taken_for_a_new_one(disk: FaultyFilesystem) -> None:
    point = RecoveryPoint(disk, "/log")
    point.note(OffsetAndEpoch(6, 2))
    point.close()
    disk.flip_bit(PATH, 8)
    assert read(disk) == OffsetAndEpoch(6, 2)
    disk.flip_bit(PATH, 72)
    assert read(disk) is None
