"""Where a backup lies: a directory, or an object store by its URL.

A file is there as a whole or not at all, and what is there stays when the power goes.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, Protocol

from ottla.cli.errors import CommandError

READ_BYTES: Final = 8 << 20
SYNC_BYTES: Final = 32 << 20  # Written to the disk while more comes in.


class FileWriter(Protocol):
    def write(self, data: memoryview) -> None: ...

    def commit(self) -> None:
        """The file is there from now on."""

    def discard(self) -> None:
        """It never was."""


class Store(Protocol):
    address: str

    def read(self, name: str) -> bytes | None:
        """None if there is no such file."""

    def stream(self, name: str) -> Iterator[memoryview]:
        """The file in parts; FileNotFoundError."""

    def write(self, name: str, data: bytes) -> None: ...

    def writer(self, name: str) -> FileWriter: ...

    def delete(self, name: str) -> None:
        """Nothing if there is no such file."""

    def names(self, suffix: str, under: str = "") -> list[str]:
        """Of all files in a folder that end so, in order."""

    def lock(self) -> AbstractContextManager[None]:
        """One backup at a time, if the store can; CommandError if another one is under way."""


def open_store(address: str) -> Store:
    return ObjectStore.at(address) if "://" in address else DirectoryStore(Path(address))


class DirectoryStore:
    def __init__(self, root: Path) -> None:
        self.address = str(root)
        self._root = root

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def stream(self, name: str) -> Iterator[memoryview]:
        buffer = bytearray(READ_BYTES)
        with (self._root / name).open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                yield memoryview(buffer)[:count]

    def write(self, name: str, data: bytes) -> None:
        writer = self.writer(name)
        writer.write(memoryview(data))
        writer.commit()

    def writer(self, name: str) -> FileWriter:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return _LocalWriter(path)

    def delete(self, name: str) -> None:
        path = self._root / name
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self._root or not folder.is_dir() or any(folder.iterdir()):
                return
            folder.rmdir()

    def names(self, suffix: str, under: str = "") -> list[str]:
        found = (self._root / under).rglob(f"*{suffix}")
        return sorted(path.relative_to(self._root).as_posix() for path in found if path.is_file())

    @contextmanager
    def lock(self) -> Iterator[None]:
        self._root.mkdir(parents=True, exist_ok=True)
        with (self._root / "lock").open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CommandError(f"another `ottla backup` works on {self.address}") from None
            yield


class _LocalWriter:
    """Under another name until it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._file = self._part.open("wb", buffering=0)
        self._unsynced = 0
        self._syncer: ThreadPoolExecutor | None = None
        self._syncing: Future[None] | None = None

    def write(self, data: memoryview) -> None:
        position = 0
        while position < len(data):
            position += self._file.write(data[position:])
        self._unsynced += len(data)
        if self._unsynced >= SYNC_BYTES and (self._syncing is None or self._syncing.done()):
            self._syncer = self._syncer or ThreadPoolExecutor(1)
            self._syncing = self._syncer.submit(os.fdatasync, self._file.fileno())
            self._unsynced = 0

    def commit(self) -> None:
        self._end_syncing()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.replace(self._path)
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def discard(self) -> None:
        with suppress(OSError):
            self._end_syncing()
        self._file.close()
        self._part.unlink(missing_ok=True)

    def _end_syncing(self) -> None:
        if self._syncer is not None:
            self._syncer.shutdown()
            self._syncer = None
        if self._syncing is not None:
            self._syncing.result()


class ObjectStore:
    """By obstore: s3://, gs://, az://, file://, memory://; a writer uploads in parts."""

    def __init__(self, store: Any, address: str) -> None:
        self.address = address
        self._store = store

    @classmethod
    def at(cls, url: str) -> "ObjectStore":
        """Credentials come from the environment, as each provider names them."""
        try:
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ModuleNotFoundError:
            raise CommandError(
                f"{url} needs the package obstore: pip install 'ottla[backup]'"
            ) from None
        try:
            return cls(from_url(url), url)
        except (BaseError, ValueError) as error:
            raise CommandError(f"{url}: {error}") from None

    def read(self, name: str) -> bytes | None:
        try:
            with self._errors():
                return bytes(self._store.get(name).bytes())
        except FileNotFoundError:
            return None

    def stream(self, name: str) -> Iterator[memoryview]:
        with self._errors():
            for part in self._store.get(name).stream(min_chunk_size=READ_BYTES):
                yield memoryview(part)

    def write(self, name: str, data: bytes) -> None:
        with self._write_errors():
            self._store.put(name, data)

    def writer(self, name: str) -> FileWriter:
        return _UploadWriter(self._store, name, self._write_errors)

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError), self._errors():
            self._store.delete(name)

    def names(self, suffix: str, under: str = "") -> list[str]:
        with self._errors():
            return sorted(
                found["path"]
                for page in self._store.list(prefix=under or None)
                for found in page
                if found["path"].endswith(suffix)
            )

    def lock(self) -> AbstractContextManager[None]:
        """Object stores have no locks; one backup at a time is the caller's to see to."""
        return nullcontext()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the store did not do, in a line; FileNotFoundError for what is not there."""
        from obstore.exceptions import BaseError, NotFoundError

        try:
            yield
        except (FileNotFoundError, NotFoundError) as error:
            raise FileNotFoundError(f"{self.address}: {_reason(error)}") from None
        except (BaseError, OSError) as error:
            raise CommandError(f"{self.address}: {_reason(error)}") from None

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Where something is not there, it is the bucket."""
        try:
            with self._errors():
                yield
        except FileNotFoundError as error:
            raise CommandError(str(error)) from None


def _reason(error: Exception) -> str:
    """Of S3 what the server said; obstore tells it with the whole chain of causes behind it."""
    answer = re.search(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", str(error))
    if answer is not None:
        return f"{answer[1]}: {answer[2]}"
    return " ".join(str(error).partition("Debug source")[0].split())


class _UploadWriter:
    def __init__(
        self, store: Any, name: str, errors: Callable[[], AbstractContextManager[None]]
    ) -> None:
        from obstore import open_writer

        self._errors = errors
        self._file = open_writer(store, name, buffer_size=READ_BYTES)

    def write(self, data: memoryview) -> None:
        with self._errors():
            self._file.write(bytes(data))

    def commit(self) -> None:
        with self._errors():
            self._file.close()

    def discard(self) -> None:
        """An upload that is not completed is no object."""
