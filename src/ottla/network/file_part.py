"""A part of a response that is still in a file."""

from typing import Protocol


class ReadableFile(Protocol):
    """What a session needs from a file; storage's files have it."""

    def read(self, position: int, size: int) -> bytes: ...

    def read_cached(self, position: int, size: int) -> bytes | None: ...

    def fileno(self) -> int | None: ...


class FilePart(Protocol):
    """`size` bytes of `file` from `position` on; they must stay there until they are sent.

    If the file turns out to be shorter, the connection is closed: the size has been promised.
    """

    @property
    def file(self) -> ReadableFile: ...

    @property
    def position(self) -> int: ...

    @property
    def size(self) -> int: ...


Part = bytes | FilePart

FILE_PART_MEMORY_BYTES = 256  # Roughly the memory for one.


def memory_size(part: Part) -> int:
    return len(part) if isinstance(part, bytes) else FILE_PART_MEMORY_BYTES
