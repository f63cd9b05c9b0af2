import pytest

from ottla.records.builder import Record, build_batch
from ottla.storage.errors import CorruptLog
from ottla.storage.faulty_filesystem import FaultyFilesystem, PowerLoss
from ottla.storage.log_directory import LogDirectory
from ottla.storage.segment import Segment
from ottla.storage.segment_swap import recover_swaps, swap_segments

DIRECTORY = "/data/orders-0"
OLD = (0, 10, 20)
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")


def name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def new_content() -> bytes:
    """Reaches from offset 0 to 19, as the first two segments did."""
    first = build_batch([Record(value=b"a")], base_offset=3)
    second = build_batch([Record(value=b"b")], base_offset=15, last_offset_delta=4)
    return bytes(first + second)


def new_disk(seed: int = 0) -> FaultyFilesystem:
    disk = FaultyFilesystem(seed)
    disk.make_directory(DIRECTORY)
    for base_offset in OLD:
        for suffix in SUFFIXES:
            disk.write_atomically(f"{DIRECTORY}/{name(base_offset, suffix)}", b"old")
    for suffix in SUFFIXES:
        content = new_content() if suffix == ".log" else b"new"
        disk.write_atomically(f"{DIRECTORY}/{name(0, suffix)}.cleaned", content)
    return disk


def segments(disk: FaultyFilesystem) -> list[Segment]:
    log_directory = LogDirectory("/data", disk)
    return [Segment(log_directory, DIRECTORY, offset, size=3, on_disk=True) for offset in OLD]


def contents(disk: FaultyFilesystem) -> dict[str, bytes]:
    """Without the files that were removed from the log."""
    return {
        name: disk.read_bytes(f"{DIRECTORY}/{name}")
        for name in disk.list(DIRECTORY)
        if not name.endswith(".deleted")
    }


BEFORE = {name(offset, suffix): b"old" for offset in OLD for suffix in SUFFIXES}
AFTER = {name(20, suffix): b"old" for suffix in SUFFIXES} | {
    name(0, suffix): new_content() if suffix == ".log" else b"new" for suffix in SUFFIXES
}


def test_the_new_segment_takes_the_place_of_the_old_ones() -> None:
    disk = new_disk()
    deleted = swap_segments(disk, DIRECTORY, 0, segments(disk)[:2])
    assert contents(disk) == AFTER
    assert deleted == [
        f"{DIRECTORY}/{name(offset, suffix)}.deleted" for offset in (0, 10) for suffix in SUFFIXES
    ]
    for path in deleted:
        disk.remove(path)
    recover_swaps(disk, DIRECTORY)
    assert contents(disk) == AFTER


def test_what_was_not_swapped_in_is_removed() -> None:
    disk = new_disk()
    recover_swaps(disk, DIRECTORY)
    assert contents(disk) == BEFORE


@pytest.mark.parametrize("steps_count", range(24))
def test_a_crash_leaves_the_old_segments_or_the_new_one(steps_count: int) -> None:
    outcomes = []
    for seed in range(8):
        disk = new_disk(seed)
        old = segments(disk)[:2]
        disk.power_loss_after(steps_count)
        try:
            swap_segments(disk, DIRECTORY, 0, old)
        except PowerLoss:
            pass
        disk.crash()
        disk.power_loss_after(seed)
        try:
            recover_swaps(disk, DIRECTORY)
        except PowerLoss:
            disk.crash()
            recover_swaps(disk, DIRECTORY)
        disk.crash()
        outcomes.append(contents(disk))
    assert all(outcome in (BEFORE, AFTER) for outcome in outcomes)


def test_both_outcomes_of_a_crash_happen() -> None:
    outcomes = []
    for seed in range(20):
        disk = new_disk(seed)
        swap_segments(disk, DIRECTORY, 0, segments(disk)[:2])
        disk.crash()
        recover_swaps(disk, DIRECTORY)
        outcomes.append(contents(disk))
    assert BEFORE in outcomes
    assert AFTER in outcomes


def test_a_swap_with_a_damaged_batch_is_not_finished() -> None:
    disk = new_disk()
    for suffix in SUFFIXES:
        disk.rename(f"{DIRECTORY}/{name(0, suffix)}.cleaned", f"{DIRECTORY}/{name(0, suffix)}.swap")
    path = f"{DIRECTORY}/{name(0, '.log')}.swap"
    before = contents(disk)
    file = disk.open(path)
    file.write_at((-12).to_bytes(4, "big", signed=True), 8)  # A batch of 0 bytes.
    with pytest.raises(CorruptLog):
        recover_swaps(disk, DIRECTORY)
    assert contents(disk).keys() == before.keys()
