"""The contents of a partition, read over a socket and checked batch by batch."""

from typing import NamedTuple

from tests.clients.requests import fetch, fetched, list_offsets, listed
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.batch import iterate_headers, validate_checksum
from ottla.records.decoder import iterate_records

EARLIEST, LATEST = -2, -1


class Stored(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None


class StoredPartition(NamedTuple):
    start_offset: int
    end_offset: int
    records: list[Stored]

    @property
    def offsets(self) -> list[int]:
        return [record.offset for record in self.records]


def read_partition(wire: Wire, topic: str, partition: int = 0) -> StoredPartition:
    """Everything in it; nothing may be appended meanwhile, but retention may run."""
    while True:
        start, end = (find_offset(wire, topic, time, partition) for time in (EARLIEST, LATEST))
        records = _read(wire, topic, partition, start, end)
        if records is not None:
            return StoredPartition(start, end, records)


def find_offset(wire: Wire, topic: str, timestamp: int = LATEST, partition: int = 0) -> int:
    """Retried while the leader is too new to know."""
    request = list_offsets(topic, timestamp, partition=partition)
    while (found := listed(wire.call(request))).error_code == ErrorCode.offset_not_available:
        pass
    assert found.error_code == ErrorCode.none, found
    return int(found.offset)


def _read(wire: Wire, topic: str, partition: int, start: int, end: int) -> list[Stored] | None:
    """None if retention removed some of it meanwhile."""
    records: list[Stored] = []
    offset = start
    while offset < end:
        answer = fetched(wire.call(fetch(topic, offset, partition=partition)))
        if answer.error_code == ErrorCode.offset_out_of_range:
            return None
        assert answer.error_code == ErrorCode.none
        assert answer.records, f"{topic}-{partition} has nothing at {offset}, before {end}"
        for position, header in iterate_headers(answer.records):
            validate_checksum(answer.records, position, header)
            records += [
                Stored(record.offset, record.key, record.value)
                for record in iterate_records(answer.records, position)
                if record.offset >= offset
            ]
            offset = header.next_offset
    return records
