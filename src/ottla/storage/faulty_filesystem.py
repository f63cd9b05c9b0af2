"""An in-memory disk that fails like a real one, reproducibly from a seed.

A file has its content on disk plus the writes since its last sync; a directory has the names on
disk plus the changes since its last sync. A crash keeps what is on disk and a prefix of the rest,
in write order, drawn from the seed and torn at any byte; after the tear there may be zeros or
garbage up to the former file size. A sync that fails loses what it should have written (the system
forgets that those pages were dirty): a later sync that succeeds leaves what the disk had there
before, or zeros where it had nothing.

`power_loss_after` cuts the power mid-operation: from then on every operation raises `PowerLoss`
until `crash` starts the machine again.
"""

import errno
import functools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Concatenate, ParamSpec, TypeVar

from ottla.protocol.lazy_dataclass import dataclass
from ottla.storage.filesystem import Buffer, parent_of, write_atomically

P = ParamSpec("P")
T = TypeVar("T")

_SECTOR_BYTES = 512  # Garbage behind a torn write ends where a sector could.


class PowerLoss(BaseException):
    """No error handler may outlive a power loss, so this is not an Exception."""


@dataclass(slots=True)
class _Write:
    position: int
    data: bytearray | None  # None: the file was truncated at `position`.
    lost: bool = False  # Only the file's size follows from it.

    def apply(self, content: bytearray) -> None:
        if self.data is None:
            del content[self.position :]
            return
        end = self.position + len(self.data)
        content.extend(bytes(max(0, end - len(content))))
        if not self.lost:
            content[self.position : end] = self.data


@dataclass(slots=True, eq=False)
class _FileNode:
    modified_ms: int
    content: bytearray = field(default_factory=bytearray)
    on_disk: bytearray = field(default_factory=bytearray)
    unsynced: list[_Write] = field(default_factory=list)
    cached: bool = True
    failing_reads_count: int = 0

    def write(self, write: _Write) -> None:
        write.apply(self.content)
        self.unsynced.append(write)

    def sync(self) -> None:
        for write in self.unsynced:
            write.apply(self.on_disk)
        self.unsynced.clear()

    def lose_unsynced(self) -> None:
        for write in self.unsynced:
            write.lost = True

    def flip_bit(self, position: int, bit: int) -> None:
        for data, start in self._copies():
            if start <= position < start + len(data):
                data[position - start] ^= 1 << bit

    def crash(self, chance: random.Random) -> None:
        kept = chance.randint(0, len(self.unsynced))
        for write in self.unsynced[:kept]:
            write.apply(self.on_disk)
        for torn in self.unsynced[kept : kept + 1]:
            if torn.data is not None:
                part = torn.data[: chance.randint(0, len(torn.data))]
                _Write(torn.position, part, torn.lost).apply(self.on_disk)
        self._extend_with_junk(chance)
        self.unsynced.clear()
        self.content[:] = self.on_disk

    def _extend_with_junk(self, chance: random.Random) -> None:
        missing = len(self.content) - len(self.on_disk)
        if missing <= 0:
            return
        extent = chance.choice((0, min(missing, _SECTOR_BYTES), missing))
        self.on_disk += chance.choice((bytes(extent), chance.randbytes(extent)))

    def _copies(self) -> Iterator[tuple[bytearray, int]]:
        yield self.content, 0
        yield self.on_disk, 0
        for write in self.unsynced:
            if write.data is not None:
                yield write.data, write.position


@dataclass(slots=True, eq=False)
class _DirectoryNode:
    entries: "dict[str, _Node]" = field(default_factory=dict)
    on_disk: "dict[str, _Node]" = field(default_factory=dict)
    unsynced: "list[dict[str, _Node | None]]" = field(default_factory=list)  # None: removed.

    def change(self, changes: "dict[str, _Node | None]") -> None:
        _apply(changes, self.entries)
        self.unsynced.append(changes)

    def sync(self) -> None:
        self.on_disk = dict(self.entries)
        self.unsynced.clear()

    def crash(self, chance: random.Random) -> None:
        for changes in self.unsynced[: chance.randint(0, len(self.unsynced))]:
            _apply(changes, self.on_disk)
        self.unsynced.clear()
        self.entries = dict(self.on_disk)
        for name in sorted(self.entries):
            self.entries[name].crash(chance)


_Node = _FileNode | _DirectoryNode


def _apply(changes: dict[str, _Node | None], entries: dict[str, _Node]) -> None:
    for name, node in changes.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _files_below(node: _Node) -> Iterator[_FileNode]:
    if isinstance(node, _FileNode):
        yield node
        return
    for child in node.entries.values():
        yield from _files_below(child)


def _changing(
    method: Callable[Concatenate["FaultyFilesystem", P], T],
) -> Callable[Concatenate["FaultyFilesystem", P], T]:
    """Wrap an operation that changes the disk: atomic, and one step of `power_loss_after`."""

    @functools.wraps(method)
    def step(self: "FaultyFilesystem", /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.guard:
            self.take_step()
            return method(self, *args, **kwargs)

    return step


class FaultyFile:
    __slots__ = ("_boot_count", "_closed", "_disk", "_node", "path", "size")

    def __init__(self, path: str, node: _FileNode, disk: "FaultyFilesystem") -> None:
        self.path = path
        self.size = len(node.content)
        self._node = node
        self._disk = disk
        self._boot_count = disk.boot_count
        self._closed = False

    def append(self, data: Buffer) -> int:
        position = self.size
        self.write_at(data, position)
        return position

    def append_all(self, buffers: Sequence[Buffer]) -> int:
        return self.append(b"".join(buffers))

    def read(self, position: int, size: int) -> bytes:
        with self._disk.guard:
            self._check_open()
            if self._node.failing_reads_count:
                self._node.failing_reads_count -= 1
                raise OSError(errno.EIO, "injected read error", self.path)
            self._node.cached = True
            return bytes(self._node.content[position : position + max(size, 0)])

    def read_cached(self, position: int, size: int) -> bytes | None:
        with self._disk.guard:
            self._check_open()
            return self.read(position, size) if self._node.cached else None

    def truncate(self, size: int) -> None:
        with self._disk.guard:
            self._check_open()
            self._disk.take_step()
            if size > len(self._node.content):
                missing = size - len(self._node.content)
                self._node.write(_Write(len(self._node.content), bytearray(missing)))
            else:
                self._node.write(_Write(size, None))
            self.size = size

    def sync(self) -> None:
        with self._disk.guard:
            self._check_open()
            self._disk.take_step()
            if self._disk.take_sync_failure():
                self._node.lose_unsynced()
                raise OSError(errno.EIO, "injected sync failure", self.path)
            self._node.sync()

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        self._closed = True

    def write_at(self, data: Buffer, position: int) -> None:
        with self._disk.guard:
            self._check_open()
            self._disk.take_step()
            growth = position + len(data) - len(self._node.content)
            self._disk.reserve(growth, self.path)
            self._node.write(_Write(position, bytearray(data)))
            self._node.modified_ms = self._disk.now_ms()
            self.size = len(self._node.content)

    def _check_open(self) -> None:
        self._disk.check_power()
        if self._closed or self._boot_count != self._disk.boot_count:
            raise OSError(errno.EBADF, "the file is closed", self.path)


class FaultyFilesystem:
    """The methods up to `lock` are those of `Filesystem`; the rest inject failures."""

    def __init__(self, seed: int = 0, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self.guard = threading.RLock()
        self.boot_count = 0  # A crash closes the files that were opened before it.
        self._crashes_count = 0
        self._chance = random.Random(seed)
        self._root = _DirectoryNode()
        self._locked: set[str] = set()
        self._capacity: int | None = None
        self._sync_failures_count = 0
        self._steps_left: int | None = None
        self.powered_off = False

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        with self.guard:
            node = self._find(path)
            if node is None and create:
                self._create(path)
            elif isinstance(node, _DirectoryNode):
                raise IsADirectoryError(errno.EISDIR, "is a directory", path)
            return FaultyFile(path, self._file(path), self)

    def read_bytes(self, path: str) -> bytes:
        file = self.open(path)
        return file.read(0, file.size)

    def write_atomically(self, path: str, data: Buffer) -> None:
        write_atomically(self, path, data)

    def exists(self, path: str) -> bool:
        with self.guard:
            return self._find(path) is not None

    def size(self, path: str) -> int:
        with self.guard:
            return len(self._file(path).content)

    def modified_ms(self, path: str) -> int:
        with self.guard:
            return self._file(path).modified_ms

    def list(self, path: str) -> list[str]:
        with self.guard:
            return sorted(self._directory(path).entries)

    @_changing
    def make_directory(self, path: str, *, sync: bool = True) -> None:
        directory = self._root
        for name in _names(path):
            child = directory.entries.get(name)
            if child is None:
                child = _DirectoryNode()
                directory.change({name: child})
                if sync:
                    directory.sync()
            if isinstance(child, _FileNode):
                raise FileExistsError(errno.EEXIST, "is a file", path)
            directory = child

    @_changing
    def rename(self, source: str, target: str) -> None:
        if parent_of(source) != parent_of(target):
            raise OSError(errno.EXDEV, "rename within one directory only", source)
        node = self._find(source)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        if source != target:
            changes = {_name(source): None, _name(target): node}
            self._directory(parent_of(source)).change(changes)

    @_changing
    def remove(self, path: str) -> None:
        self._file(path)
        self._directory(parent_of(path)).change({_name(path): None})

    def remove_tree(self, path: str) -> None:
        with self.guard:
            node = self._find(path)
            if isinstance(node, _DirectoryNode):
                for name in sorted(node.entries):
                    child = f"{path}/{name}"
                    if isinstance(node.entries[name], _DirectoryNode):
                        self.remove_tree(child)
                    else:
                        self.remove(child)
                self._remove_directory(path)

    @_changing
    def sync_directory(self, path: str) -> None:
        directory = self._directory(path)
        if self.take_sync_failure():
            raise OSError(errno.EIO, "injected sync failure", path)
        directory.sync()

    def space(self, path: str) -> tuple[int, int]:
        with self.guard:
            self._directory(path)
        return -1, -1

    def boot_id(self) -> str:
        return f"boot {self._crashes_count}"

    def lock(self, path: str) -> "FaultyLock":
        with self.guard:
            if path in self._locked:
                raise BlockingIOError(errno.EAGAIN, "locked", path)
            self.open(path, create=True)
            self._locked.add(path)
            return FaultyLock(path, self._locked, self._find)

    def crash(self) -> None:
        """Lose what a power loss may lose, then restart: locks are free, files are closed."""
        with self.guard:
            self.boot_count += 1
            self._crashes_count += 1
            self._steps_left = None
            self.powered_off = False
            self._sync_failures_count = 0
            self._locked = set()
            self._root.crash(self._chance)

    def kill(self) -> None:
        """Only the process dies: its writes stay, its locks are free, its files are closed."""
        with self.guard:
            self.boot_count += 1
            self._locked = set()

    def power_loss_after(self, steps_count: int) -> None:
        """The operation after this many changes raises PowerLoss, and so do all later ones."""
        self._steps_left = steps_count

    def fail_next_sync(self, count: int = 1) -> None:
        """Fails the next sync of a file or a directory, whichever comes first."""
        self._sync_failures_count = count

    def disk_full(self, limit_bytes: int | None = 0) -> None:
        """Limit growth to this many more bytes; None lifts the limit."""
        used = sum(len(file.content) for file in _files_below(self._root))
        self._capacity = None if limit_bytes is None else used + limit_bytes

    def fail_reads(self, path: str, count: int = 1) -> None:
        self._file(path).failing_reads_count = count

    def evict(self, path: str) -> None:
        """Drop a file from the cache: `read_cached` returns None until it is read."""
        self._file(path).cached = False

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        self._file(path).flip_bit(position, bit)

    def check_power(self) -> None:
        if self.powered_off:
            raise PowerLoss

    def take_step(self) -> None:
        self.powered_off = self.powered_off or self._steps_left == 0
        self.check_power()
        if self._steps_left is not None:
            self._steps_left -= 1

    def take_sync_failure(self) -> bool:
        if not self._sync_failures_count:
            return False
        self._sync_failures_count -= 1
        return True

    def reserve(self, growth: int, path: str) -> None:
        if self._capacity is None or growth <= 0:
            return
        used = sum(len(file.content) for file in _files_below(self._root))
        if used + growth > self._capacity:
            raise OSError(errno.ENOSPC, "no space left on device", path)

    @_changing
    def _create(self, path: str) -> None:
        self._directory(parent_of(path)).change({_name(path): _FileNode(self.now_ms())})

    @_changing
    def _remove_directory(self, path: str) -> None:
        self._directory(parent_of(path)).change({_name(path): None})

    def _find(self, path: str) -> _Node | None:
        self.check_power()
        node: _Node = self._root
        for name in _names(path):
            if isinstance(node, _FileNode) or name not in node.entries:
                return None
            node = node.entries[name]
        return node

    def _file(self, path: str) -> _FileNode:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(node, _DirectoryNode):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return node

    def _directory(self, path: str) -> _DirectoryNode:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        if isinstance(node, _FileNode):
            raise NotADirectoryError(errno.ENOTDIR, "is a file", path)
        return node


class FaultyLock:
    __slots__ = ("_file", "_find", "_locked", "_path")

    def __init__(self, path: str, locked: set[str], find: "Callable[[str], _Node | None]") -> None:
        self._path = path
        self._locked = locked
        self._find = find
        self._file = find(path)

    def is_in_place(self) -> bool:
        return self._find(self._path) is self._file

    def release(self) -> None:
        self._locked.discard(self._path)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
