"""Metadata snapshots: `<offset>-<epoch>.checkpoint` next to the log, in KRaft's format.

A snapshot holds the state before its offset: a batch of control records with a header and the
voters, batches of records, a footer. Writes are atomic; one from another node is collected in a
file whose name has the suffix `.part`.

The methods wait for the disk. Callers handle OSError.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ottla.machine.contract import RecordCodec
from ottla.raft.control_records import control_batch, kraft_version, voters_in, voters_record
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import VoterSet
from ottla.records.batch import assign, iterate_headers, read_header, validate_checksum
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import control_type, iterate_records
from ottla.records.errors import CorruptBatch, RecordError
from ottla.storage.errors import StorageError
from ottla.storage.filesystem import Filesystem

_HEADER_TYPE: Final = 3
_FOOTER_TYPE: Final = 4
_HEADER_VALUE: Final = struct.Struct(">hqx")  # Version, time of the last record, no tagged fields.
_FOOTER_VALUE: Final = struct.Struct(">hx")
_BATCH_RECORDS: Final = 1000
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_PART_SUFFIX: Final = ".part"
_DAMAGED_SUFFIX: Final = ".damaged"


class SnapshotContent(NamedTuple):
    voters: VoterSet | None  # None if it was written before there was a quorum.
    records: list[Record]  # With their offsets in the snapshot.


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}.checkpoint"


class SnapshotStore:
    def __init__(self, filesystem: Filesystem, directory: str) -> None:
        self._filesystem = filesystem
        self._directory = directory

    def list(self) -> dict[OffsetAndEpoch, int]:
        """The existing snapshots with their sizes, oldest first."""
        names = map(_NAME.fullmatch, self._filesystem.list(self._directory))
        found = sorted(OffsetAndEpoch(int(name[1]), int(name[2])) for name in names if name)
        return {each: self._filesystem.size(self._path(each)) for each in found}

    def write(
        self,
        snapshot_id: OffsetAndEpoch,
        voters: VoterSet,
        records: Iterable[object],
        codec: RecordCodec,
        now_ms: int,
    ) -> int:
        """Write a snapshot; returns its size."""
        content = bytearray()
        offset = 0
        for batch in _batches(voters, records, codec, now_ms):
            assign(batch, 0, offset, snapshot_id.epoch)
            offset = read_header(batch).next_offset
            content += batch
        self._filesystem.write_atomically(self._path(snapshot_id), content)
        return len(content)

    def read(self, snapshot_id: OffsetAndEpoch) -> SnapshotContent:
        """StorageError if it is damaged."""
        return self._read(self._path(snapshot_id))

    def read_range(self, snapshot_id: OffsetAndEpoch, position: int, size: int) -> bytes:
        file = self._filesystem.open(self._path(snapshot_id))
        try:
            return file.read(position, size)
        finally:
            file.close()

    def remove_before(self, snapshot_id: OffsetAndEpoch) -> None:
        for older in self.list():
            if older < snapshot_id:
                self._filesystem.remove(self._path(older))

    def set_aside(self, snapshot_id: OffsetAndEpoch) -> None:
        """Rename a damaged snapshot, so that it is no longer read."""
        path = self._path(snapshot_id)
        self._filesystem.rename(path, path + _DAMAGED_SUFFIX)
        self._filesystem.sync_directory(self._directory)

    # A snapshot from another node.

    def write_part(self, snapshot_id: OffsetAndEpoch, position: int, data: bytes) -> None:
        """Position 0 begins a new one; bytes past the position are void."""
        file = self._filesystem.open(self._part(snapshot_id), create=True)
        try:
            file.truncate(position)
            file.append(data)
        finally:
            file.close()

    def read_part(self, snapshot_id: OffsetAndEpoch) -> SnapshotContent:
        """StorageError if it is damaged."""
        return self._read(self._part(snapshot_id))

    def finish_part(self, snapshot_id: OffsetAndEpoch) -> int:
        """Sync it and give it its final name; returns its size."""
        path = self._path(snapshot_id)
        file = self._filesystem.open(self._part(snapshot_id))
        try:
            file.sync()
        finally:
            file.close()
        self._filesystem.rename(self._part(snapshot_id), path)
        self._filesystem.sync_directory(self._directory)
        return self._filesystem.size(path)

    def remove_parts(self) -> None:
        for name in self._filesystem.list(self._directory):
            if name.endswith(_PART_SUFFIX):
                self._filesystem.remove(f"{self._directory}/{name}")

    def _path(self, snapshot_id: OffsetAndEpoch) -> str:
        return f"{self._directory}/{snapshot_name(snapshot_id)}"

    def _part(self, snapshot_id: OffsetAndEpoch) -> str:
        return self._path(snapshot_id) + _PART_SUFFIX

    def _read(self, path: str) -> SnapshotContent:
        content = self._filesystem.read_bytes(path)
        try:
            return _read(content)
        except RecordError as error:
            raise StorageError(self._directory, f"{path} is damaged: {error}") from error


def _batches(
    voters: VoterSet, records: Iterable[object], codec: RecordCodec, now_ms: int
) -> Iterator[bytearray]:
    header = (_HEADER_TYPE, _HEADER_VALUE.pack(0, now_ms))
    yield control_batch([header, kraft_version(), voters_record(voters)], now_ms)
    batch: list[Record] = []
    for record in records:
        key, value = codec.encode(record)
        batch.append(Record(timestamp=now_ms, key=key, value=value))
        if len(batch) == _BATCH_RECORDS:
            yield build_batch(batch)
            batch = []
    if batch:
        yield build_batch(batch)
    yield control_batch([(_FOOTER_TYPE, _FOOTER_VALUE.pack(0))], now_ms)


def _read(content: bytes) -> SnapshotContent:
    complete = False
    voters: VoterSet | None = None
    records: list[Record] = []
    for position, header in iterate_headers(content):
        validate_checksum(content, position, header)
        if not header.is_control:
            records += iterate_records(content, position)
            continue
        for _, voter_set in voters_in(content, position):
            voters = voter_set
        types = [control_type(record) for record in iterate_records(content, position)]
        complete = _FOOTER_TYPE in types
    if not complete:
        raise CorruptBatch("it has no footer")
    return SnapshotContent(voters, records)
