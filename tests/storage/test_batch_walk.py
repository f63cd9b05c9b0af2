import pytest

from ottla.storage.batch_walk import walk
from ottla.storage.errors import CorruptLog, NotCached
from ottla.storage.faulty_filesystem import FaultyFile, FaultyFilesystem

from .batches import NOW_MS, produced

PATH = "/00000000000000000000.log"


@pytest.fixture
def disk() -> FaultyFilesystem:
    return FaultyFilesystem()


def filled(disk: FaultyFilesystem, *sizes: int) -> FaultyFile:
    file = disk.open(PATH, create=True)
    offset = 0
    for size in sizes:
        batch, header = produced(b"x" * size, b"y", base_offset=offset)
        file.append(batch)
        offset = header.next_offset
    return file


def test_batches_of_all_sizes_are_found(disk: FaultyFilesystem) -> None:
    file = filled(disk, 1, 5000, 20_000, 3, 8192, 1)
    batches = list(walk(file, 0, file.size))
    assert [(batch.base_offset, batch.last_offset) for batch in batches] == [
        (0, 1),
        (2, 3),
        (4, 5),
        (6, 7),
        (8, 9),
        (10, 11),
    ]
    assert batches[0].position == 0
    assert [batch.end for batch in batches[:-1]] == [batch.position for batch in batches[1:]]
    assert batches[-1].end == file.size
    assert {batch.max_timestamp for batch in batches} == {NOW_MS}


def test_a_walk_begins_and_ends_where_it_is_told(disk: FaultyFilesystem) -> None:
    file = filled(disk, 1, 1, 1)
    first, second, _ = walk(file, 0, file.size)
    assert list(walk(file, first.end, second.end)) == [second]


@pytest.mark.parametrize("size", [10, 60, 61])
def test_zeros_are_no_batch(disk: FaultyFilesystem, size: int) -> None:
    file = filled(disk, 1)
    end = file.size
    file.append(bytes(size))
    with pytest.raises(CorruptLog) as report:
        list(walk(file, 0, file.size))
    assert report.value.position == end


def test_a_batch_that_is_not_all_there(disk: FaultyFilesystem) -> None:
    file = filled(disk, 100)
    with pytest.raises(CorruptLog):
        list(walk(file, 0, file.size - 1))


def test_a_walk_can_decline_to_wait(disk: FaultyFilesystem) -> None:
    file = filled(disk, 100)
    disk.evict(PATH)
    with pytest.raises(NotCached):
        list(walk(file, 0, file.size, cached_only=True))
