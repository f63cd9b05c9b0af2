import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.faulty_filesystem import FaultyFilesystem, PowerLoss

SEEDS = range(40)


def disk_with_file(seed: int = 0) -> FaultyFilesystem:
    disk = FaultyFilesystem(seed)
    disk.make_directory("/d")
    disk.write_atomically("/d/a", b"synced")
    return disk


def after_crash(seed: int, unsynced: bytes) -> bytes:
    disk = disk_with_file(seed)
    disk.open("/d/a").append(unsynced)
    disk.crash()
    return disk.read_bytes("/d/a")


def test_a_crash_keeps_what_was_synced_and_tears_the_rest_anywhere() -> None:
    outcomes = {after_crash(seed, b"ABCDE") for seed in range(200)}
    assert all(outcome.startswith(b"synced") for outcome in outcomes)
    assert {b"synced" + b"ABCDE"[:size] for size in range(6)} <= outcomes
    assert b"synced" + bytes(5) in outcomes
    assert max(map(len, outcomes)) == len(b"syncedABCDE")


def test_the_same_seed_gives_the_same_crash() -> None:
    assert [after_crash(seed, b"x" * 2000) for seed in SEEDS] == [
        after_crash(seed, b"x" * 2000) for seed in SEEDS
    ]


def test_a_synced_file_survives_only_if_its_name_was_synced() -> None:
    outcomes = set()
    for seed in SEEDS:
        disk = disk_with_file(seed)
        file = disk.open("/d/new", create=True)
        file.append(b"x")
        file.sync()
        disk.crash()
        outcomes.add(disk.exists("/d/new"))
        file = disk.open("/d/new", create=True)
        file.truncate(0)
        file.append(b"x")
        file.sync()
        disk.sync_directory("/d")
        disk.crash()
        assert disk.read_bytes("/d/new") == b"x"
    assert outcomes == {True, False}


def test_renames_and_removals_are_kept_in_order() -> None:
    outcomes = set()
    for seed in SEEDS:
        disk = disk_with_file(seed)
        disk.rename("/d/a", "/d/b")
        disk.write_atomically("/d/other", b"")
        disk.rename("/d/b", "/d/c")
        disk.remove("/d/c")
        disk.crash()
        outcomes.add(tuple(disk.list("/d")))
    assert outcomes == {("b", "other"), ("c", "other"), ("other",)}


def test_what_a_failed_sync_should_have_written_is_lost() -> None:
    disk = disk_with_file()
    file = disk.open("/d/a")
    file.append(b"lost")
    disk.fail_next_sync()
    with pytest.raises(OSError, match="sync failure") as raised:
        file.sync()
    assert raised.value.errno == errno.EIO
    assert file.read(0, 10) == b"syncedlost"
    file.append(b"later")
    file.sync()
    disk.crash()
    assert disk.read_bytes("/d/a") == b"synced\0\0\0\0later"


def test_what_a_failed_sync_should_have_replaced_is_still_there() -> None:
    disk = disk_with_file()
    file = disk.open("/d/a")
    file.write_at(b"SYNC", 0)
    disk.fail_next_sync()
    with pytest.raises(OSError, match="sync failure"):
        file.sync()
    assert file.read(0, 6) == b"SYNCed"
    disk.crash()
    assert disk.read_bytes("/d/a") == b"synced"


def test_a_failed_directory_sync_keeps_the_change_volatile() -> None:
    outcomes = set()
    for seed in SEEDS:
        disk = disk_with_file(seed)
        disk.remove("/d/a")
        disk.fail_next_sync()
        with pytest.raises(OSError, match="sync failure"):
            disk.sync_directory("/d")
        disk.crash()
        outcomes.add(disk.exists("/d/a"))
    assert outcomes == {True, False}


def test_a_full_disk_refuses_and_frees_up() -> None:
    disk = disk_with_file()
    file = disk.open("/d/a")
    disk.disk_full(3)
    with pytest.raises(OSError, match="no space") as raised:
        file.append(b"1234")
    assert raised.value.errno == errno.ENOSPC
    assert file.size == 6
    file.append(b"123")
    file.write_at(b"456", 6)
    with pytest.raises(OSError, match="no space"):
        disk.write_atomically("/d/a", b"x")
    assert disk.list("/d") == ["a"]
    assert disk.read_bytes("/d/a") == b"synced456"
    file.truncate(4)
    assert file.append(b"12345") == 4
    disk.disk_full(None)
    file.append(bytes(100))


def test_flipped_bits_are_on_the_disk() -> None:
    disk = disk_with_file()
    file = disk.open("/d/a")
    file.append(b"new")
    disk.flip_bit("/d/a", 0, 1)
    disk.flip_bit("/d/a", 7, 0)
    assert disk.read_bytes("/d/a") == b"qyncedndw"
    file.sync()
    disk.crash()
    assert disk.read_bytes("/d/a") == b"qyncedndw"


def test_read_errors_and_cold_reads() -> None:
    disk = disk_with_file()
    file = disk.open("/d/a")
    disk.fail_reads("/d/a")
    with pytest.raises(OSError, match="read error"):
        file.read(0, 6)
    disk.evict("/d/a")
    assert file.read_cached(0, 6) is None
    assert file.read(0, 6) == b"synced"
    assert file.read_cached(0, 6) == b"synced"


def test_power_loss_stops_everything_until_the_restart() -> None:
    disk = disk_with_file()
    file = disk.open("/d/a")
    disk.power_loss_after(1)
    file.append(b"1")
    with pytest.raises(PowerLoss):
        file.append(b"2")
    with pytest.raises(PowerLoss):
        file.read(0, 1)
    with pytest.raises(PowerLoss):
        disk.exists("/d/a")
    disk.crash()
    assert disk.read_bytes("/d/a")[:6] == b"synced"
    with pytest.raises(OSError, match="closed"):
        file.read(0, 1)


def test_a_crash_frees_locks() -> None:
    disk = disk_with_file()
    disk.lock("/d/.lock")
    disk.crash()
    disk.lock("/d/.lock")


@given(
    seed=st.integers(0, 1000),
    steps=st.lists(st.sampled_from(["append", "sync", "atomic"]), max_size=12),
    power_loss=st.integers(0, 30),
)
def test_synced_content_is_never_lost(seed: int, steps: list[str], power_loss: int) -> None:
    disk = disk_with_file(seed)
    disk.write_atomically("/d/checkpoint", b"0")
    file = disk.open("/d/a")
    synced = file.size
    checkpoints = [b"0"]
    disk.power_loss_after(power_loss)
    try:
        for number, step in enumerate(steps):
            if step == "append":
                file.append(b"%d" % number)
            elif step == "sync":
                file.sync()
                synced = file.size
            else:
                checkpoints.append(b"%d" % number)
                disk.write_atomically("/d/checkpoint", b"%d" % number)
                checkpoints = checkpoints[-1:]
    except PowerLoss:
        pass
    before = bytes(file._node.content)
    disk.crash()
    after = disk.read_bytes("/d/a")
    assert after[:synced] == before[:synced]
    assert len(after) <= len(before)
    assert disk.read_bytes("/d/checkpoint") in checkpoints
