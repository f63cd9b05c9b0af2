"""Builds dead letters: the record that a share group gave up, and why (KIP-1191).

A dead letter has the key, value and headers of the record, unless the group opts out, plus headers
that tell its origin and the reason.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.groups.share.delivery import DeadLetter
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import iterate_headers
from ottla.records.builder import Headers, Record
from ottla.records.decoder import iterate_records
from ottla.records.errors import RecordError
from ottla.replication.partition import Partition
from ottla.storage.errors import StorageError

BATCH_BYTES: Final = 1 << 18  # The last record may exceed it.
HEADER_PREFIX: Final = "__dlq.errors."

_READ_BYTES: Final = 1 << 20
_RECORD_OVERHEAD: Final = 64  # A record without key and value also has a size.


class Letters(NamedTuple):
    records: list[Record]
    written: tuple[DeadLetter, ...]  # The letters that these records represent.


def read_letters(
    source: Partition, letters: Sequence[DeadLetter], group_id: str, *, copy_record: bool
) -> Letters:
    """The first of the letters, about one batch; call in a thread.

    Records that are no longer in the log are skipped, and count as written. Records from the high
    watermark on are still there: a new leader may have to wait until its followers confirm them.
    ApiError(offset_not_available) if there are only such records.
    """
    found, last_offset = _read(source, deque(letters))
    return Letters(
        [_dead(record, letter, source, group_id, copy=copy_record) for record, letter in found],
        tuple(
            letter._replace(last_offset=min(letter.last_offset, last_offset))
            for letter in letters
            if letter.first_offset <= last_offset
        ),
    )


def without_content(letter: Record) -> Record:
    """The letter reduced to where its record is."""
    own = tuple(header for header in letter.headers if header[0].startswith(HEADER_PREFIX))
    return Record(timestamp=letter.timestamp, headers=own)


def _read(
    source: Partition, waiting: deque[DeadLetter]
) -> tuple[list[tuple[Record, DeadLetter]], int]:
    """The records, and the offset up to which none is missing. Consumes `waiting`."""
    log, last_offset = source.log, waiting[-1].last_offset
    found: list[tuple[Record, DeadLetter]] = []
    size = 0
    _pass(waiting, log.log_start_offset)
    while waiting and waiting[0].first_offset < log.log_end_offset:
        first_offset = waiting[0].first_offset
        try:
            part = log.read(first_offset, _READ_BYTES, log.high_watermark)
            records = [] if part is None else _records(part.read(), waiting)
        except (OSError, StorageError) as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        except RecordError as error:
            raise ApiError(ErrorCode.corrupt_message, str(error)) from error
        if part is None:
            if not found:
                raise ApiError(
                    ErrorCode.offset_not_available,
                    f"offset {first_offset} of {log.topic_partition} cannot be read yet",
                )
            return found, first_offset - 1
        for record in records:
            _pass(waiting, record.offset)
            found.append((record, waiting[0]))
            size += len(record.key or b"") + len(record.value or b"") + _RECORD_OVERHEAD
            if size >= BATCH_BYTES:
                return found, record.offset
        _pass(waiting, part.next_offset)
    return found, last_offset


def _records(content: bytes, letters: Iterable[DeadLetter]) -> list[Record]:
    """The records in the content that the letters are about."""
    found: list[Record] = []
    coming = iter(letters)
    letter = next(coming, None)
    for position, header in iterate_headers(content):
        if letter is None:
            break
        if header.is_control or header.last_offset < letter.first_offset:
            continue
        for record in iterate_records(content, position):
            while letter is not None and letter.last_offset < record.offset:
                letter = next(coming, None)
            if letter is not None and letter.first_offset <= record.offset:
                found.append(record)
    return found


def _pass(waiting: deque[DeadLetter], offset: int) -> None:
    """Drop what comes before the offset."""
    while waiting and waiting[0].last_offset < offset:
        waiting.popleft()
    if waiting and waiting[0].first_offset < offset:
        waiting[0] = waiting[0]._replace(first_offset=offset)


def _dead(
    record: Record, letter: DeadLetter, source: Partition, group_id: str, *, copy: bool
) -> Record:
    topic, index = source.log.topic_partition
    values = {
        "topic": topic,
        "partition": index,
        "offset": record.offset,
        "group": group_id,
        "delivery.count": letter.delivery_count,
        "message": letter.reason.value,
    }
    headers: Headers = tuple(
        (f"{HEADER_PREFIX}{name}", str(value).encode()) for name, value in values.items()
    )
    if not copy:
        return Record(timestamp=record.timestamp, headers=headers)
    return Record(
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        headers=(*record.headers, *headers),
    )
