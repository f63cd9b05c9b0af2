"""Errors of record batches.

The caller turns these into error codes: `CorruptBatch` is CORRUPT_MESSAGE, `UnsupportedFormat` is
UNSUPPORTED_FOR_MESSAGE_FORMAT, `InvalidRecord` is INVALID_RECORD, `InvalidTimestamp` is
INVALID_TIMESTAMP, `BatchTooLarge` is MESSAGE_TOO_LARGE.
"""

from collections.abc import Sequence


class RecordError(ValueError):
    """The bytes are not an acceptable record batch."""


class CorruptBatch(RecordError):
    """The bytes were damaged or truncated: checksum, length, or a field out of bounds."""


class UnsupportedFormat(RecordError):
    """Message formats 0 and 1, which no client since Kafka 0.11 writes."""


class InvalidRecord(RecordError):
    """The bytes are intact, but their content is not allowed here."""

    def __init__(self, message: str, record_indexes: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.record_indexes = list(record_indexes)  # Indexes of the offending records in the batch.


class InvalidTimestamp(InvalidRecord):
    """A timestamp, or its type, that the topic does not accept."""


class BatchTooLarge(RecordError):
    """More bytes than the limit, as they are or decompressed."""
