import pytest

from ottla.storage.disk_space import (
    FULL_FIRST_MS,
    FULL_MAX_MS,
    LEAST_BYTES,
    RESERVE_BYTES,
    ROOM_BYTES,
    DiskSpace,
)
from ottla.storage.faulty_filesystem import FaultyFilesystem

RESERVE = "/data/space.reserve"
GIB = 1 << 30


class Disk(FaultyFilesystem):
    """A volume of 100 GiB that reports its free space."""

    free_bytes = 50 * GIB

    def space(self, path: str) -> tuple[int, int]:
        return 100 * GIB, self.free_bytes


@pytest.fixture
def disk() -> Disk:
    disk = Disk()
    disk.make_directory("/data")
    return disk


def test_a_reserve_is_kept_while_there_is_room_and_given_up_when_the_disk_is_full(
    disk: Disk,
) -> None:
    space = DiskSpace(disk, "/data", reserve_bytes=RESERVE_BYTES)
    assert not space.look(0, is_full=False)
    assert disk.size(RESERVE) == RESERVE_BYTES
    assert space.give_up_reserve()
    assert not disk.exists(RESERVE)
    assert space.give_up_reserve()  # Twice does no harm.


def test_a_disk_is_full_when_hardly_anything_is_left(disk: Disk) -> None:
    space = DiskSpace(disk, "/data")
    disk.free_bytes = LEAST_BYTES
    assert not space.look(0, is_full=False)
    disk.free_bytes = LEAST_BYTES - 1
    assert space.look(0, is_full=False)


def test_a_full_disk_has_room_when_enough_is_free_beside_the_reserve(disk: Disk) -> None:
    space = DiskSpace(disk, "/data", reserve_bytes=RESERVE_BYTES)
    disk.free_bytes = ROOM_BYTES + RESERVE_BYTES - 1
    assert space.look(0, is_full=True)
    assert space.look(FULL_FIRST_MS, is_full=True)
    disk.free_bytes += 1
    assert not space.look(FULL_FIRST_MS, is_full=True)


def test_a_limit_that_the_volume_does_not_tell_of_is_tried_more_and_more_rarely(
    disk: Disk,
) -> None:
    space = DiskSpace(disk, "/data")
    now_ms, waits = 0, []
    for _ in range(8):
        began_ms = now_ms
        while space.look(now_ms, is_full=True):
            now_ms += 500
        waits.append(now_ms - began_ms)
    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, FULL_MAX_MS, FULL_MAX_MS]
    now_ms += FULL_MAX_MS + 1
    assert not space.look(now_ms, is_full=False)  # It has had room for a long time.
    assert space.look(now_ms, is_full=True)
    assert not space.look(now_ms + FULL_FIRST_MS, is_full=True)


def test_a_volume_that_tells_nothing_gets_no_reserve_and_is_tried() -> None:
    disk = FaultyFilesystem()
    disk.make_directory("/data")
    space = DiskSpace(disk, "/data", reserve_bytes=RESERVE_BYTES)
    assert not space.look(0, is_full=False)
    assert not disk.exists(RESERVE)
    assert not space.give_up_reserve()
    assert space.look(0, is_full=True)
    assert not space.look(FULL_FIRST_MS, is_full=True)
