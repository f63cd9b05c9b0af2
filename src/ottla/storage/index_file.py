"""An index file: fixed-size entries, one after the other.

It is open only while it is read or written, so that indexes hold no descriptors. The index collects
entries and writes them when it is flushed; what a crash loses is rebuilt from the log.
"""

from ottla.storage.filesystem import Buffer, Filesystem


class CorruptIndex(Exception):
    """The file is not a valid index; the segment rebuilds it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"index {path} is corrupt: {reason}")


class IndexFile:
    __slots__ = ("entry_size", "filesystem", "path", "was_written")

    def __init__(self, path: str, entry_size: int, filesystem: Filesystem) -> None:
        self.path = path
        self.entry_size = entry_size
        self.filesystem = filesystem
        self.was_written = False  # By this process.

    @property
    def exists(self) -> bool:
        return self.filesystem.exists(self.path)

    def entries_count(self) -> int:
        """Complete entries; 0 if there is no file."""
        try:
            return self.filesystem.size(self.path) // self.entry_size
        except FileNotFoundError:
            return 0

    def read(self) -> bytes:
        """All complete entries."""
        try:
            data = self.filesystem.read_bytes(self.path)
        except FileNotFoundError:
            return b""
        return data[: len(data) - len(data) % self.entry_size]

    def read_entry(self, index: int) -> bytes:
        file = self.filesystem.open(self.path)
        try:
            return file.read(index * self.entry_size, self.entry_size)
        finally:
            file.close()

    def write(self, first_index: int, entries: Buffer, *, sync: bool = True) -> None:
        """Write entries in order, as the last of the file.

        The owner of the directory syncs the file name.
        """
        self.was_written = True
        file = self.filesystem.open(self.path, create=True)
        try:
            position = first_index * self.entry_size
            if file.size != position:
                file.truncate(position)
            file.append(entries)
            if sync:
                file.sync()
        finally:
            file.close()

    def truncate(self, entries_count: int) -> None:
        """Not synced: after a crash, the segment that was being changed is reindexed."""
        try:
            file = self.filesystem.open(self.path)
        except FileNotFoundError:
            return
        file.truncate(entries_count * self.entry_size)
        file.close()

    def is_whole(self) -> bool:
        return self.filesystem.size(self.path) % self.entry_size == 0

    def validate_size(self) -> None:
        if not self.is_whole():
            size = self.filesystem.size(self.path)
            raise CorruptIndex(self.path, f"{size} bytes are not entries of {self.entry_size}")

    def rename(self, path: str) -> None:
        if self.exists:
            self.filesystem.rename(self.path, path)
        self.path = path
