import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.leader_epochs import EpochEntry, LeaderEpochCache
from ottla.storage.text_checkpoint import CorruptCheckpoint

PATH = "/log/leader-epoch-checkpoint"


def new_filesystem() -> FaultyFilesystem:
    filesystem = FaultyFilesystem()
    filesystem.make_directory("/log")
    return filesystem


def cache_of(*entries: tuple[int, int]) -> LeaderEpochCache:
    cache = LeaderEpochCache(PATH, new_filesystem())
    for entry in entries:
        cache.assign(*entry)
    return cache


def test_the_file_has_kafkas_text() -> None:
    filesystem = new_filesystem()
    cache = LeaderEpochCache.load(PATH, filesystem)
    cache.assign(0, 0)
    cache.assign(2, 150)
    assert not filesystem.exists(PATH)
    cache.flush(200)
    assert filesystem.read_bytes(PATH).split() == b"0 2 0 0 2 150".split()
    again = LeaderEpochCache.load(PATH, filesystem)
    assert again.entries == (EpochEntry(0, 0), EpochEntry(2, 150))
    assert again.latest_epoch == 2


def test_an_epoch_without_batches_is_not_written() -> None:
    filesystem = new_filesystem()
    cache = LeaderEpochCache.load(PATH, filesystem)
    cache.assign(0, 0)
    cache.flush(0)
    assert not filesystem.exists(PATH)
    cache.flush(10)
    written = filesystem.read_bytes(PATH)
    cache.assign(3, 10)
    cache.flush(10)
    assert filesystem.read_bytes(PATH) == written
    cache.flush(11)
    assert LeaderEpochCache.load(PATH, filesystem).entries == ((0, 0), (3, 10))


def test_an_epoch_is_assigned_once() -> None:
    cache = cache_of((1, 10), (1, 20), (1, 10))
    assert cache.entries == ((1, 10),)
    assert cache_of().latest_epoch == -1


def test_entries_that_contradict_a_new_one_go() -> None:
    assert cache_of((1, 10), (2, 20), (3, 20)).entries == ((1, 10), (3, 20))
    assert cache_of((1, 10), (2, 20), (3, 15)).entries == ((1, 10), (3, 15))
    assert cache_of((1, 10), (3, 20), (2, 25)).entries == ((1, 10), (2, 25))
    assert cache_of((1, 10), (2, 20), (2, 15)).entries == ((1, 10), (2, 15))


def test_the_end_offset_of_an_epoch() -> None:
    cache = cache_of((2, 10), (4, 20), (6, 30))
    assert cache.end_offset_for(-1, 99) == (-1, -1)
    assert cache.end_offset_for(1, 99) == (1, 10)
    assert cache.end_offset_for(2, 99) == (2, 20)
    assert cache.end_offset_for(3, 99) == (2, 20)
    assert cache.end_offset_for(5, 99) == (4, 30)
    assert cache.end_offset_for(6, 99) == (6, 99)
    assert cache.end_offset_for(7, 99) == (-1, -1)
    assert cache_of().end_offset_for(0, 99) == (-1, -1)


def test_the_epoch_of_an_offset() -> None:
    cache = cache_of((2, 10), (4, 20))
    assert [cache.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 99)] == [-1, 2, 2, 4, 4]


def test_truncation_at_either_end() -> None:
    cache = cache_of((2, 10), (4, 20), (6, 30))
    cache.truncate_from_end(30)
    assert list(cache.entries) == [(2, 10), (4, 20)]
    cache.truncate_from_start(5)
    assert list(cache.entries) == [(2, 10), (4, 20)]
    cache.truncate_from_start(15)
    assert list(cache.entries) == [(2, 15), (4, 20)]
    cache.truncate_from_start(20)
    assert list(cache.entries) == [(4, 20)]
    cache.truncate_from_start(25)
    assert list(cache.entries) == [(4, 25)]
    cache.truncate_from_end(25)
    assert (cache.entries, cache.latest_epoch) == ((), -1)
    cache.assign(7, 3)
    cache.clear()
    assert cache.entries == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "version and a count"),
        (b"x\n0\n", "version and a count"),
        (b"1\n0\n", "version 1"),
        (b"0\n2\n1 10\n", "1 entries, not 2"),
        (b"0\n1\n1 ten\n", "'1 ten' is no epoch entry"),
        (b"0\n1\n1 2 3\n", "is no epoch entry"),
        (b"0\n2\n2 10\n1 20\n", "comes after"),
        (b"0\n2\n1 10\n2 10\n", "comes after"),
        (b"\xff\xfe", "version and a count"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(content: bytes, reason: str) -> None:
    filesystem = new_filesystem()
    filesystem.write_atomically(PATH, content)
    with pytest.raises(CorruptCheckpoint, match=reason):
        LeaderEpochCache.load(PATH, filesystem)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["assign", "assign", "end", "start"]),
            st.integers(0, 8),
            st.integers(0, 50),
        ),
        max_size=20,
    )
)
def test_epochs_and_offsets_always_increase(steps: list[tuple[str, int, int]]) -> None:
    filesystem = new_filesystem()
    cache = LeaderEpochCache(PATH, filesystem)
    for step, epoch, offset in steps:
        if step == "assign":
            cache.assign(epoch, offset)
            assert cache.latest_epoch == epoch
            assert cache.epoch_for_offset(max(offset, cache.entries[-1].start_offset)) == epoch
        elif step == "end":
            cache.truncate_from_end(offset)
        else:
            cache.truncate_from_start(offset)
        for before, after in zip(cache.entries, cache.entries[1:], strict=False):
            assert before.epoch < after.epoch
            assert before.start_offset < after.start_offset
    cache.flush(2**63)
    assert LeaderEpochCache.load(PATH, filesystem).entries == cache.entries
