"""A filesystem that keeps a second tree with only what was synced.

Contents appear there when their file is synced, names when their directory is, and nothing sooner:
the tree is what the worst power loss leaves behind. A node that runs on it:

    python -m tests.cluster.faults.synced_copy COPY serve --data DATA ...

keeps such a copy of everything below DATA; `lose_unsynced` then replaces DATA with it.
"""

import contextlib
import dataclasses
import os
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from ottla.cli.main import main
from ottla.node import environment
from ottla.storage.filesystem import Buffer
from ottla.storage.local_filesystem import LocalFile, LocalFilesystem

_INODES = ".inodes"  # The contents; names in the tree are hard links to them.
_NEW_NAME = ".new-name"


class CopiedFile(LocalFile):
    __slots__ = ("_changed_from", "_copy", "_copying")

    def __init__(self, path: str, descriptor: int, copy: Path) -> None:
        super().__init__(path, descriptor)
        self._copy = copy
        self._copying = threading.Lock()
        self._changed_from = 0  # Since the last sync.

    def append(self, data: Buffer) -> int:
        self._changed_from = min(self._changed_from, self.size)
        return super().append(data)

    def append_all(self, buffers: Sequence[Buffer]) -> int:
        self._changed_from = min(self._changed_from, self.size)
        return super().append_all(buffers)

    def write_at(self, data: Buffer, position: int) -> None:
        self._changed_from = min(self._changed_from, position)
        super().write_at(data, position)

    def truncate(self, size: int) -> None:
        self._changed_from = min(self._changed_from, size)
        super().truncate(size)

    def sync(self) -> None:
        """A process killed meanwhile leaves the previously synced contents intact."""
        with self._copying:
            size, start = self.size, self._changed_from
            self._changed_from = size
            super().sync()
            data = self.read(start, size - start)
            with self._copy.open("r+b" if self._copy.exists() else "w+b") as copy:
                copy.seek(start)
                copy.write(data)
                copy.truncate(start + len(data))


class CopyingFilesystem(LocalFilesystem):
    def __init__(self, copy: Path) -> None:
        self._copy = copy
        self._inodes = copy / _INODES
        self._inodes.mkdir(parents=True, exist_ok=True)
        self._naming = threading.Lock()

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        is_new = create and not self.exists(path)
        opened = super().open(path, create=create)
        number = opened.fileno()
        assert number is not None
        descriptor = os.dup(number)
        inode = self._inode_of(os.fstat(descriptor))
        if is_new:
            inode.unlink(missing_ok=True)  # Its number was another file's before.
        return CopiedFile(path, descriptor, inode)

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        with self._naming:
            self._copy_names(Path(path), self._copy / path.lstrip("/"))

    def _copy_names(self, here: Path, there: Path) -> None:
        there.mkdir(parents=True, exist_ok=True)
        names = set(os.listdir(here))
        for gone in set(os.listdir(there)) - names:
            _remove(there / gone)
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # Removed since.
                if (here / name).is_dir():
                    (there / name).mkdir(exist_ok=True)
                else:
                    self._link(self._inode_of((here / name).stat()), there / name)

    def _link(self, inode: Path, name: Path) -> None:
        if not inode.exists():
            inode.touch()  # The name appears before any content of the file.
        if name.exists() and name.samefile(inode):
            return
        new_name = self._inodes / _NEW_NAME
        new_name.unlink(missing_ok=True)
        os.link(inode, new_name)
        new_name.replace(name)

    def _inode_of(self, status: os.stat_result) -> Path:
        return self._inodes / str(status.st_ino)


def lose_unsynced(data: Path, copy: Path) -> None:
    """Replace what a process wrote with what it had synced."""
    there = copy / str(data.absolute()).lstrip("/")
    empty(data)
    shutil.copytree(there, data, dirs_exist_ok=True)
    shutil.rmtree(copy)
    (copy / _INODES).mkdir(parents=True)
    there.mkdir(parents=True)
    for path in data.rglob("*"):
        name = there / path.relative_to(data)
        if path.is_dir():
            name.mkdir(parents=True, exist_ok=True)
        else:
            name.parent.mkdir(parents=True, exist_ok=True)
            inode = copy / _INODES / str(path.stat().st_ino)
            shutil.copyfile(path, inode)
            os.link(inode, name)


def empty(directory: Path) -> None:
    """The directory itself stays: it may be a mount point."""
    for path in directory.iterdir():
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _run(copy: Path) -> None:
    real = environment.Environment.real()
    copied = dataclasses.replace(real, filesystem=CopyingFilesystem(copy))
    environment.Environment.real = staticmethod(lambda: copied)  # type: ignore[method-assign]
    main()


if __name__ == "__main__":
    _run(Path(sys.argv.pop(1)))
