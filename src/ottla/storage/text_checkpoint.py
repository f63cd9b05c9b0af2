"""Kafka's text format for small tables.

0            version
2            number of lines that follow
orders 0 5   fields of an entry, separated by spaces
orders 1 7
"""

from collections.abc import Iterable

from ottla.storage.filesystem import Filesystem

VERSION = 0


class CorruptCheckpoint(Exception):
    """The file is not what its format says; its reader knows what to do without it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is corrupt: {reason}")


def write_entries(filesystem: Filesystem, path: str, entries: Iterable[tuple[object, ...]]) -> None:
    lines = [" ".join(map(str, entry)) for entry in entries]
    text = "\n".join([str(VERSION), str(len(lines)), *lines]) + "\n"
    filesystem.write_atomically(path, text.encode())


def read_entries(filesystem: Filesystem, path: str) -> list[list[str]]:
    """The fields of each entry; none when there is no file."""
    try:
        data = filesystem.read_bytes(path)
    except FileNotFoundError:
        return []
    try:
        version, count, *lines = data.decode().splitlines()
        if int(version) != VERSION:
            raise CorruptCheckpoint(path, f"version {version} is not known")
        if int(count) != len(lines):
            raise CorruptCheckpoint(path, f"it has {len(lines)} entries, not {count}")
    except ValueError:
        raise CorruptCheckpoint(path, "it does not start with a version and a count") from None
    return [line.split() for line in lines]
