import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.index_file import CorruptIndex
from ottla.storage.time_index import TimeIndex, TimestampOffset

PATH = "/log/00000000000000000100.timeindex"


@pytest.fixture
def filesystem() -> FaultyFilesystem:
    return new_filesystem()


def new_filesystem() -> FaultyFilesystem:
    filesystem = FaultyFilesystem()
    filesystem.make_directory("/log")
    return filesystem


def test_the_file_has_kafkas_bytes(filesystem: FaultyFilesystem) -> None:
    index = TimeIndex(PATH, 100, filesystem)
    index.maybe_append(1_700_000_000_000, 101)
    index.maybe_append(1_700_000_000_256, 356)
    index.flush()
    assert filesystem.read_bytes(PATH) == bytes.fromhex(
        "0000018bcfe56800 00000001  0000018bcfe56900 00000100"
    )


def test_only_larger_timestamps_are_kept(filesystem: FaultyFilesystem) -> None:
    index = TimeIndex(PATH, 100, filesystem)
    assert index.last_entry == TimestampOffset(-1, 100)
    index.maybe_append(-1, 101)
    assert index.entries_count == 0
    index.maybe_append(10, 103)
    index.maybe_append(10, 104)
    index.maybe_append(9, 105)
    index.maybe_append(12, 106)
    assert index.entries_count == 2
    assert index.last_entry == TimestampOffset(12, 106)
    assert index.lookup(9) == TimestampOffset(-1, 100)
    assert index.lookup(11) == TimestampOffset(10, 103)
    assert index.lookup(99) == TimestampOffset(12, 106)


def test_full_keeps_a_place_for_the_roll(filesystem: FaultyFilesystem) -> None:
    index = TimeIndex(PATH, 100, filesystem)
    index.maybe_append(1, 101)
    assert not index.is_full(36)
    index.maybe_append(2, 102)
    assert index.is_full(36)
    assert index.size == 24


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("00000005", "4 bytes"),
        ("0000000000000009 00000001 0000000000000008 00000002", "from 9 to 8"),
        ("0000000000000009 ffffffff", "relative"),
    ],
)
def test_what_cannot_be_an_index_is_refused(
    filesystem: FaultyFilesystem, content: str, reason: str
) -> None:
    filesystem.write_atomically(PATH, bytes.fromhex(content))
    with pytest.raises(CorruptIndex, match=reason):
        TimeIndex(PATH, 100, filesystem).validate()


def test_rename_and_remove(filesystem: FaultyFilesystem) -> None:
    index = TimeIndex(PATH, 100, filesystem)
    with pytest.raises(CorruptIndex, match="missing"):
        index.validate()
    index.reset()
    index.flush()
    index.file.rename(PATH + ".deleted")
    assert filesystem.list("/log") == ["00000000000000000100.timeindex.deleted"]
    assert index.file.path == PATH + ".deleted"


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 30)),
            st.tuples(st.just("truncate"), st.integers(100, 150)),
            st.tuples(st.sampled_from(["flush", "unload", "reopen"]), st.just(0)),
        ),
        max_size=40,
    ),
    targets=st.lists(st.integers(-2, 40), max_size=10),
)
def test_the_index_behaves_like_a_list(steps: list[tuple[str, int]], targets: list[int]) -> None:
    filesystem = new_filesystem()
    index = TimeIndex(PATH, 100, filesystem)
    model: list[TimestampOffset] = []
    for number, (step, argument) in enumerate(steps):
        if step == "append":
            entry = TimestampOffset(argument, 100 + number)
            index.maybe_append(*entry)
            if entry.timestamp > (model[-1].timestamp if model else -1):
                model.append(entry)
        elif step == "truncate":
            index.truncate_to(argument)
            model = [entry for entry in model if entry.offset < argument]
        elif step == "unload":
            index.unload()
        else:
            index.flush()
            if step == "reopen":
                index = TimeIndex(PATH, 100, filesystem)
                index.validate()
    assert index.entries_count == len(model)
    for target in targets:
        expected = [entry for entry in model if entry.timestamp <= target][-1:]
        assert index.lookup(target) == (expected or [TimestampOffset(-1, 100)])[0]
