"""Kafka's text format for small tables.

0            version
2            number of lines that follow
orders 0 5   fields of an entry, separated by spaces
orders 1 7

The last entry is followed by a checksum (CRC-32C) of everything before it: 32 spaces and tabs, for
zeros and ones. Kafka accepts any white space there as the end of the line; files that Kafka wrote
have no checksum.
"""

from collections.abc import Iterable

from ottla.records.crc import crc32c
from ottla.storage.filesystem import Filesystem

VERSION = 0
_BITS = " \t"
_CHECKSUM_BITS = 32


class CorruptCheckpoint(Exception):
    """The file violates its format; the reader knows how to do without it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is corrupt: {reason}")


def write_entries(filesystem: Filesystem, path: str, entries: Iterable[tuple[object, ...]]) -> None:
    lines = [" ".join(map(str, entry)) for entry in entries]
    text = "\n".join([str(VERSION), str(len(lines)), *lines])
    checksum = _checksum(text) if lines else ""
    filesystem.write_atomically(path, f"{text}{checksum}\n".encode())


def read_entries(filesystem: Filesystem, path: str) -> list[list[str]]:
    """The fields of each entry; empty if there is no file. CorruptCheckpoint if it is damaged."""
    try:
        data = filesystem.read_bytes(path)
    except FileNotFoundError:
        return []
    try:
        text = data.decode()
        version, count, *lines = text.splitlines()
        if int(version) != VERSION:
            raise CorruptCheckpoint(path, f"version {version} is not known")
        if int(count) != len(lines):
            raise CorruptCheckpoint(path, f"it has {len(lines)} entries, not {count}")
    except ValueError:
        raise CorruptCheckpoint(path, "it does not start with a version and a count") from None
    content = text.rstrip()
    checksum = text[len(content) :].rstrip("\n")
    if checksum and checksum != _checksum(content):
        raise CorruptCheckpoint(path, "its checksum is wrong")
    return [line.split() for line in lines]


def _checksum(text: str) -> str:
    return "".join(_BITS[int(bit)] for bit in f"{crc32c(text.encode()):0{_CHECKSUM_BITS}b}")
