import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.index_file import CorruptIndex
from ottla.storage.offset_index import OffsetIndex, OffsetPosition

PATH = "/log/00000000000000000100.index"


@pytest.fixture
def filesystem() -> FaultyFilesystem:
    return new_filesystem()


def new_filesystem() -> FaultyFilesystem:
    filesystem = FaultyFilesystem()
    filesystem.make_directory("/log")
    return filesystem


def test_the_file_has_kafkas_bytes(filesystem: FaultyFilesystem) -> None:
    index = OffsetIndex(PATH, 100, filesystem)
    index.append(105, 0)
    index.append(300, 4097)
    index.flush()
    assert filesystem.read_bytes(PATH) == bytes.fromhex("00000005 00000000  000000c8 00001001")


def test_lookup_gives_the_entry_at_or_before(filesystem: FaultyFilesystem) -> None:
    index = OffsetIndex(PATH, 100, filesystem)
    assert index.lookup(500) == OffsetPosition(100, 0)
    index.append(105, 10)
    index.append(110, 20)
    assert index.lookup(104) == OffsetPosition(100, 0)
    assert index.lookup(105) == OffsetPosition(105, 10)
    assert index.lookup(109) == OffsetPosition(105, 10)
    assert index.lookup(9000) == OffsetPosition(110, 20)
    assert index.last_offset == 110
    assert index.lookup_position(9) == OffsetPosition(100, 0)
    assert index.lookup_position(10) == OffsetPosition(105, 10)
    assert index.lookup_position(99) == OffsetPosition(110, 20)


def test_entries_are_loaded_when_they_are_needed(filesystem: FaultyFilesystem) -> None:
    index = OffsetIndex(PATH, 100, filesystem)
    index.append(105, 10)
    index.unload()
    assert index.entries_count == 1
    index.append(110, 20)
    again = OffsetIndex(PATH, 100, filesystem)
    assert again.entries_count == 1
    index.flush()
    assert again.lookup(200) == OffsetPosition(110, 20)


def test_what_was_unloaded_survives_a_power_loss() -> None:
    """After a clean stop an index is used unchanged."""
    for seed in range(10):
        filesystem = FaultyFilesystem(seed)
        filesystem.make_directory("/log")
        index = OffsetIndex(PATH, 100, filesystem)
        index.append(105, 10)
        index.unload()
        filesystem.sync_directory("/log")
        filesystem.crash()
        assert OffsetIndex(PATH, 100, filesystem).lookup(200) == OffsetPosition(105, 10)


def test_an_empty_index_is_a_file(filesystem: FaultyFilesystem) -> None:
    index = OffsetIndex(PATH, 100, filesystem)
    with pytest.raises(CorruptIndex, match="missing"):
        index.validate()
    index.reset()
    index.flush()
    index.validate()
    assert filesystem.size(PATH) == 0


def test_full_when_no_entry_fits(filesystem: FaultyFilesystem) -> None:
    index = OffsetIndex(PATH, 100, filesystem)
    index.append(101, 0)
    assert not index.is_full(17)
    index.append(102, 1)
    assert index.is_full(17)
    assert index.size == 16


@pytest.mark.parametrize(
    ("content", "reason"),
    [("00000005 000000", "7 bytes"), ("ffffffff 00000001", "relative"), ("0" * 16, "relative")],
)
def test_what_cannot_be_an_index_is_refused(
    filesystem: FaultyFilesystem, content: str, reason: str
) -> None:
    filesystem.write_atomically(PATH, bytes.fromhex(content))
    with pytest.raises(CorruptIndex, match=reason):
        OffsetIndex(PATH, 100, filesystem).validate()


def test_rename(filesystem: FaultyFilesystem) -> None:
    index = OffsetIndex(PATH, 100, filesystem)
    index.append(105, 10)
    index.flush()
    index.file.rename(PATH + ".deleted")
    assert index.file.path == PATH + ".deleted"
    assert filesystem.list("/log") == ["00000000000000000100.index.deleted"]


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 50)),
            st.tuples(st.just("truncate"), st.integers(100, 400)),
            st.tuples(st.sampled_from(["flush", "unload", "reopen"]), st.just(0)),
        ),
        max_size=40,
    ),
    targets=st.lists(st.integers(90, 600), max_size=10),
)
def test_the_index_behaves_like_a_list(steps: list[tuple[str, int]], targets: list[int]) -> None:
    filesystem = new_filesystem()
    index = OffsetIndex(PATH, 100, filesystem)
    model: list[OffsetPosition] = []
    for step, number in steps:
        if step == "append":
            entry = OffsetPosition((model[-1].offset if model else 100) + number, len(model) * 7)
            index.append(*entry)
            model.append(entry)
        elif step == "truncate":
            index.truncate_to(number)
            model = [entry for entry in model if entry.offset < number]
        elif step == "unload":
            index.unload()
        else:
            index.flush()
            if step == "reopen":
                index = OffsetIndex(PATH, 100, filesystem)
                index.validate()
    assert index.entries_count == len(model)
    for target in targets:
        expected = [entry for entry in model if entry.offset <= target][-1:]
        assert index.lookup(target) == (expected or [OffsetPosition(100, 0)])[0]
