"""Snapshots of a machine: `<offset>-<epoch>.checkpoint` beside its log, in the format of KRaft.

A snapshot holds the state before its offset, as batches of records between a header and a footer
that are control records. It is written whole or not at all.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ottla.machine.contract import RecordCodec
from ottla.records.batch import iterate_headers, validate_checksum
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import control_type, iterate_records
from ottla.records.errors import CorruptBatch, RecordError
from ottla.storage.errors import StorageError
from ottla.storage.filesystem import Filesystem

_HEADER_TYPE: Final = 3
_FOOTER_TYPE: Final = 4
_CONTROL_KEY: Final = struct.Struct(">hh")  # Version, type.
_HEADER_VALUE: Final = struct.Struct(">hqx")  # Version, time of the last record, no tagged fields.
_FOOTER_VALUE: Final = struct.Struct(">hx")
_BATCH_RECORDS: Final = 1000
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class Snapshot(NamedTuple):
    next_offset: int
    epoch: int

    @property
    def name(self) -> str:
        return f"{self.next_offset:020d}-{self.epoch:010d}.checkpoint"


class SnapshotStore:
    """The methods wait for the disk. OSError is the caller's to handle."""

    def __init__(self, filesystem: Filesystem, directory: str) -> None:
        self._filesystem = filesystem
        self._directory = directory

    def newest(self) -> Snapshot | None:
        return max(self._snapshots(), default=None)

    def write(
        self, snapshot: Snapshot, records: Iterable[object], codec: RecordCodec, now_ms: int
    ) -> None:
        """Write it, then remove those before it."""
        content = bytearray()
        offset = 0
        for batch in _batches(records, codec, now_ms):
            content += build_batch(
                batch.records,
                base_offset=offset,
                leader_epoch=snapshot.epoch,
                control=batch.control,
            )
            offset += len(batch.records)
        self._filesystem.write_atomically(self._path(snapshot), content)
        for older in self._snapshots():
            if older < snapshot:
                self._filesystem.remove(self._path(older))

    def read(self, snapshot: Snapshot) -> Iterator[Record]:
        """The records of the state, with their offsets in the snapshot; StorageError if damaged."""
        content = self._filesystem.read_bytes(self._path(snapshot))
        try:
            yield from _read(content)
        except RecordError as error:
            raise StorageError(self._directory, f"{snapshot.name} is damaged: {error}") from error

    def _snapshots(self) -> list[Snapshot]:
        names = map(_NAME.fullmatch, self._filesystem.list(self._directory))
        return [Snapshot(int(name[1]), int(name[2])) for name in names if name]

    def _path(self, snapshot: Snapshot) -> str:
        return f"{self._directory}/{snapshot.name}"


class _Batch(NamedTuple):
    records: list[Record]
    control: bool


def _batches(records: Iterable[object], codec: RecordCodec, now_ms: int) -> Iterator[_Batch]:
    yield _control(_HEADER_TYPE, _HEADER_VALUE.pack(0, now_ms), now_ms)
    batch: list[Record] = []
    for record in records:
        key, value = codec.encode(record)
        batch.append(Record(timestamp=now_ms, key=key, value=value))
        if len(batch) == _BATCH_RECORDS:
            yield _Batch(batch, control=False)
            batch = []
    if batch:
        yield _Batch(batch, control=False)
    yield _control(_FOOTER_TYPE, _FOOTER_VALUE.pack(0), now_ms)


def _control(number: int, value: bytes, now_ms: int) -> _Batch:
    key = _CONTROL_KEY.pack(0, number)
    return _Batch([Record(timestamp=now_ms, key=key, value=value)], control=True)


def _read(content: bytes) -> Iterator[Record]:
    complete = False
    for position, header in iterate_headers(content):
        validate_checksum(content, position, header)
        if header.is_control:
            (record,) = iterate_records(content, position)
            complete = control_type(record) == _FOOTER_TYPE
        else:
            yield from iterate_records(content, position)
    if not complete:
        raise CorruptBatch("it has no footer")
