import pytest

from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.index_file import CorruptIndex
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex

PATH = "/log/00000000000000000100.txnindex"
FIRST = AbortedTransaction(producer_id=7, first_offset=90, last_offset=110, last_stable_offset=95)
SECOND = AbortedTransaction(producer_id=8, first_offset=95, last_offset=120, last_stable_offset=121)
THIRD = AbortedTransaction(producer_id=7, first_offset=125, last_offset=130, last_stable_offset=131)


@pytest.fixture
def filesystem() -> FaultyFilesystem:
    filesystem = FaultyFilesystem()
    filesystem.make_directory("/log")
    return filesystem


@pytest.fixture
def index(filesystem: FaultyFilesystem) -> TransactionIndex:
    index = TransactionIndex(PATH, 100, filesystem)
    for entry in (FIRST, SECOND, THIRD):
        index.append(entry)
    return index


def test_the_file_has_kafkas_bytes(filesystem: FaultyFilesystem, index: TransactionIndex) -> None:
    index.truncate_to(120)
    index.flush()
    assert filesystem.read_bytes(PATH) == bytes.fromhex(
        "0000 0000000000000007 000000000000005a 000000000000006e 000000000000005f"
    )


def test_there_is_no_file_without_an_entry(filesystem: FaultyFilesystem) -> None:
    index = TransactionIndex(PATH, 100, filesystem)
    index.validate()
    assert index.collect(0, 1000) == ([], False)
    index.flush()
    index.reset()
    index.file.rename(PATH + ".deleted")
    assert filesystem.list("/log") == []


def test_collect_gives_those_that_overlap(index: TransactionIndex) -> None:
    assert index.collect(0, 90) == ([], True)
    assert index.collect(0, 91) == ([FIRST], True)
    assert index.collect(0, 96) == ([FIRST, SECOND], True)
    assert index.collect(111, 122) == ([SECOND], True)
    assert index.collect(111, 140) == ([SECOND, THIRD], False)
    assert index.collect(131, 140) == ([], False)


def test_entries_are_loaded_when_they_are_needed(
    filesystem: FaultyFilesystem, index: TransactionIndex
) -> None:
    index.unload()
    assert index.entries == [FIRST, SECOND, THIRD]
    index.truncate_to(130)
    again = TransactionIndex(PATH, 100, filesystem)
    again.validate()
    assert again.entries == [FIRST, SECOND]
    again.reset()
    assert again.entries == []
    assert filesystem.size(PATH) == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("0000", "2 bytes"),
        ("0001" + "00" * 32, "version 1"),
        ("0000" + "00" * 32, "lists"),
    ],
)
def test_what_cannot_be_an_index_is_refused(
    filesystem: FaultyFilesystem, content: str, reason: str
) -> None:
    filesystem.write_atomically(PATH, bytes.fromhex(content))
    with pytest.raises(CorruptIndex, match=reason):
        TransactionIndex(PATH, 100, filesystem).validate()
