"""The record header that sets when share groups may deliver the record."""

from typing import Final

from ottla.records.batch import BatchHeader, Buffer
from ottla.records.builder import Headers
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.decoder import decode_body, iterate_records
from ottla.records.errors import RecordError

DELIVER_AT: Final = "ottla-deliver-at"  # Its value: milliseconds since 1970, in ASCII decimals.
_DIGITS_MAX: Final = 18  # These fit into an int64.
_NAME: Final = DELIVER_AT.encode()


def delivery_times(
    content: Buffer, position: int, header: BatchHeader
) -> tuple[tuple[int, int], ...]:
    """Offset and time of each record with a delivery time; unreadable ones have none."""
    try:
        if _NAME not in decode_body(content, position, header, DECOMPRESSED_BYTES_MAX):
            return ()
        times = (
            (record.offset, deliver_at_ms(record.headers))
            for record in iterate_records(content, position)
        )
        return tuple((offset, time_ms) for offset, time_ms in times if time_ms is not None)
    except RecordError:
        return ()


def deliver_at_ms(headers: Headers) -> int | None:
    for name, value in reversed(headers):
        if name == DELIVER_AT and value is not None:
            is_time = value.isdigit() and len(value) <= _DIGITS_MAX
            return int(value) if is_time else None
    return None
