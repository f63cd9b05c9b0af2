"""Entries of the index files, checked against the segment beside them.

.index      offset of a batch -> its position          4 + 4 bytes
.timeindex  largest timestamp so far -> its offset     8 + 4 bytes
.txnindex   aborted transactions                       2 + 4 * 8 bytes

Offsets of the first two are relative to the base offset, which is the name of the file.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

from ottla.cli.dump_segment import map_file
from ottla.cli.errors import CommandError
from ottla.cli.output import print_line
from ottla.cli.record_format import iso_timestamp
from ottla.records.batch import HEADER_SIZE, read_header

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_TRANSACTION_ENTRY = struct.Struct(">hqqqq")
_ENTRIES = {
    ".index": _OFFSET_ENTRY,
    ".timeindex": _TIME_ENTRY,
    ".txnindex": _TRANSACTION_ENTRY,
}

INDEX_SUFFIXES = set(_ENTRIES)

Document = dict[str, object]


def dump_index(file: Path, *, as_json: bool) -> list[str]:
    """Print every entry; return what is wrong, one line for each problem."""
    if not file.stem.isdecimal():
        raise CommandError(f"the name of {file} is not a base offset")
    content, base_offset, problems = bytes(map_file(file)), int(file.stem), list[str]()
    if file.suffix == ".index":
        entries = _offset_entries(content, base_offset, file.with_suffix(".log"), problems)
    elif file.suffix == ".timeindex":
        entries = _time_entries(content, base_offset)
    else:
        entries = _transaction_entries(content)
    for entry in entries:
        if as_json:
            print_line(json.dumps({"file": str(file), **entry}))
        else:
            words = (f"{key.replace('_', ' ')} {value}" for key, value in entry.items())
            print_line("  ".join(words))
    surplus = len(content) % _ENTRIES[file.suffix].size
    if surplus:
        problems.append(f"the last {surplus} bytes are not a whole entry")
    return [f"{file.name}: {problem}" for problem in problems]


def _unpacked(entry: struct.Struct, content: bytes) -> Iterator[tuple[int, ...]]:
    """Whole entries up to the zeros that Kafka keeps ready at the end of an index in use."""
    for number, values in enumerate(
        entry.iter_unpack(content[: len(content) // entry.size * entry.size])
    ):
        if number and not any(values):
            return
        yield values


def _offset_entries(
    content: bytes, base_offset: int, segment: Path, problems: list[str]
) -> Iterator[Document]:
    batches = map_file(segment) if segment.exists() else None
    for relative, position in _unpacked(_OFFSET_ENTRY, content):
        offset = base_offset + relative
        entry: Document = {"offset": offset, "position": position}
        if batches is not None and not _is_batch(batches, position, offset):
            problems.append(f"offset {offset} is not in a batch at position {position}")
            entry["problem"] = "no such batch"
        yield entry


def _is_batch(batches: memoryview, position: int, offset: int) -> bool:
    if not 0 <= position <= len(batches) - HEADER_SIZE:
        return False
    header = read_header(batches, position)
    return header.base_offset <= offset <= header.last_offset


def _time_entries(content: bytes, base_offset: int) -> Iterator[Document]:
    for timestamp, relative in _unpacked(_TIME_ENTRY, content):
        yield {"timestamp": iso_timestamp(timestamp), "offset": base_offset + relative}


def _transaction_entries(content: bytes) -> Iterator[Document]:
    for _, producer_id, first, last, stable in _unpacked(_TRANSACTION_ENTRY, content):
        yield {
            "producer_id": producer_id,
            "first_offset": first,
            "last_offset": last,
            "last_stable_offset": stable,
        }
