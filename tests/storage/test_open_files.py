import threading

from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.filesystem import File, Filesystem
from ottla.storage.open_files import OpenFiles


class Holder:
    def __init__(self, path: str) -> None:
        self.path = path
        self.open_file: File | None = None
        self.recently_used = False
        self.unsynced = False
        self.writer_lock: threading.Lock | None = None

    def open_own_file(self, filesystem: Filesystem) -> File:
        return filesystem.open(self.path, create=True)

    def is_open(self) -> bool:
        return self.open_file is not None


def holders(count: int) -> list[Holder]:
    return [Holder(f"/{index}") for index in range(count)]


def open_names(all_holders: list[Holder]) -> list[str]:
    return [holder.path for holder in all_holders if holder.is_open()]


def test_a_file_is_opened_once() -> None:
    (holder,) = holders(1)
    files = OpenFiles(FaultyFilesystem(), 2)
    assert files.open(holder) is files.open(holder)
    assert len(files) == 1


def test_the_count_is_bounded() -> None:
    many = holders(10)
    files = OpenFiles(FaultyFilesystem(), 3)
    for holder in many:
        files.open(holder)
    assert len(files) == len(open_names(many)) == 3


def test_what_is_in_use_stays_open() -> None:
    busy, *others = holders(10)
    files = OpenFiles(FaultyFilesystem(), 3)
    files.open(busy)
    for holder in others:
        files.open(holder)
        holder.recently_used = False
        busy.recently_used = True
    assert busy.is_open()


def test_what_is_not_synced_is_dropped_last() -> None:
    dirty, *others = holders(10)
    files = OpenFiles(FaultyFilesystem(), 3)
    files.open(dirty)
    dirty.unsynced = True
    for holder in others:
        files.open(holder)
    assert dirty.is_open()
    for holder in others:
        holder.unsynced = True
    more = Holder("/more")
    more.unsynced = True
    files.open(more)
    assert len(files) == 3


def test_a_dropped_file_stays_readable_for_those_who_hold_it() -> None:
    first, second = holders(2)
    files = OpenFiles(FaultyFilesystem(), 1)
    file = files.open(first)
    file.append(b"data")
    files.open(second)
    assert not first.is_open()
    assert file.read(0, 4) == b"data"


def test_a_released_file_is_opened_anew() -> None:
    (holder,) = holders(1)
    files = OpenFiles(FaultyFilesystem(), 2)
    files.open(holder)
    files.release(holder)
    files.release(holder)
    assert len(files) == 0
    assert files.open(holder) is holder.open_file


def test_a_file_is_not_dropped_while_it_is_written() -> None:
    written, other, *others = holders(10)
    files = OpenFiles(FaultyFilesystem(), 2)
    lock = threading.Lock()
    files.set_writer(written, lock)
    files.open(written)
    with lock:
        for holder in (other, *others):
            files.open(holder)
        assert written.is_open()
        assert len(files) == 2
    for holder in (other, *others):
        files.open(holder)
    assert not written.is_open()


def test_the_bound_is_passed_rather_than_a_writer_disturbed() -> None:
    lock = threading.Lock()
    files = OpenFiles(FaultyFilesystem(), 2)
    busy = holders(4)
    with lock:
        for holder in busy:
            files.set_writer(holder, lock)
            files.open(holder)
        assert len(open_names(busy)) == 4
