"""Batches and records of a segment or a metadata snapshot, and what is wrong with them."""

import json
import mmap
from collections.abc import Iterator
from pathlib import Path

from ottla.cli.dump_state import describe_state, record_codec_of
from ottla.cli.errors import CommandError
from ottla.cli.output import print_line
from ottla.cli.record_format import iso_timestamp, json_bytes
from ottla.records.batch import (
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    read_header,
    validate_checksum,
)
from ottla.records.builder import Record
from ottla.records.compression import Compression
from ottla.records.decoder import iterate_records, parse_marker
from ottla.records.errors import RecordError

SEGMENT_SUFFIXES = {".log", ".checkpoint"}

Document = dict[str, object]


def dump_segment(file: Path, *, deep: bool, as_json: bool) -> list[str]:
    """Print every batch that can be read; return what is wrong, one line for each problem."""
    segment = SegmentDump(file)
    for position, header in segment.batches():
        document = describe_batch(header, position)
        problem = segment.check(position, header)
        if problem:
            document["problem"] = problem
        records = list(segment.records(position, header)) if deep and not problem else []
        if as_json:
            whole = {"file": str(file), **document} | ({"records": records} if deep else {})
            print_line(json.dumps(whole, ensure_ascii=False, default=str))
        else:
            print_line(_line(document))
            for record in records:
                print_line("  " + _line(record))
    return segment.problems


class SegmentDump:
    def __init__(self, file: Path) -> None:
        self.problems: list[str] = []
        self._file = file
        self._content = map_file(file)
        self._codec = record_codec_of(file)

    def batches(self) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of whole batches; stops where the bytes are no batch any more."""
        position = 0
        while position < len(self._content):
            left = len(self._content) - position
            header = read_header(self._content, position) if left >= HEADER_SIZE else None
            if header is None or not _is_possible(header):
                self._note(self._describe_rest(position))
                return
            if header.size > left:
                self._note(
                    f"torn tail: the batch of offset {header.base_offset} at position {position} "
                    f"has {left} of {header.size} bytes; recovery truncates it"
                )
                return
            yield position, header
            position += header.size

    def check(self, position: int, header: BatchHeader) -> str | None:
        """What is wrong with one batch."""
        try:
            validate_checksum(self._content, position, header)
        except RecordError as error:
            self._note(f"bad CRC at position {position}: {error}")
            return "bad CRC"
        return None

    def records(self, position: int, header: BatchHeader) -> Iterator[Document]:
        try:
            for record in iterate_records(self._content, position):
                yield self._describe_record(record, header)
        except RecordError as error:
            self._note(f"the batch at position {position} cannot be read: {error}")

    def _describe_record(self, record: Record, header: BatchHeader) -> Document:
        document: Document = {"offset": record.offset, "timestamp": iso_timestamp(record.timestamp)}
        if header.is_control:
            marker = parse_marker(record)
            word = marker.type.name.lower() if marker else "other"
            return document | {"control": word}
        if self._codec is not None:
            return document | {"record": describe_state(self._codec, record)}
        document |= {"key": json_bytes(record.key), "value": json_bytes(record.value)}
        if record.headers:
            document["headers"] = [[name, json_bytes(value)] for name, value in record.headers]
        return document

    def _describe_rest(self, position: int) -> str:
        rest = bytes(self._content[position:])
        if not any(rest):
            return f"{len(rest)} zero bytes at the end, from position {position}"
        if len(rest) < HEADER_SIZE:
            return (
                f"torn tail: {len(rest)} bytes at position {position} are too few for a batch; "
                "recovery truncates them"
            )
        return f"no batch at position {position}; the {len(rest)} bytes from there are unreadable"

    def _note(self, problem: str) -> None:
        self.problems.append(f"{self._file.name}: {problem}")


def map_file(file: Path) -> memoryview:
    """The bytes of a file, mapped: a segment has up to 2 GB. An empty file cannot be mapped."""
    try:
        with file.open("rb") as opened:
            if not file.stat().st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from None


def describe_batch(header: BatchHeader, position: int) -> Document:
    document: Document = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "position": position,
        "size": header.size,
        "count": header.records_count,
        "compression": _codec_name(header.compression),
        "leader_epoch": header.partition_leader_epoch,
        header.timestamp_type.value + "_time": iso_timestamp(header.max_timestamp),
    }
    if header.has_producer_id:
        document |= {
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
        }
    if header.is_transactional:
        document["transactional"] = True
    if header.is_control:
        document["control"] = True
    if header.delete_horizon_ms is not None:
        document["delete_horizon"] = iso_timestamp(header.delete_horizon_ms)
    return document


def _is_possible(header: BatchHeader) -> bool:
    return header.magic == MAGIC and header.batch_length >= HEADER_SIZE - LENGTH_END


def _codec_name(number: int) -> str:
    try:
        return Compression(number).name.lower()
    except ValueError:
        return f"unknown {number}"


def _line(document: Document) -> str:
    return "  ".join(
        key if value is True else f"{key.replace('_', ' ')} {_text(value)}"
        for key, value in document.items()
    )


def _text(value: object) -> str:
    """Text that cannot be mistaken stays as it is; a record's content must not break the line."""
    if isinstance(value, str) and value.isprintable() and value not in ("", "null"):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
