"""The whole batches of what a fetch brought, up to an offset."""

from typing import NamedTuple

from ottla.cli.errors import CommandError
from ottla.client.wire.cluster import TopicPartition
from ottla.records.batch import iterate_headers, validate_checksum
from ottla.records.errors import RecordError


class WholeBatches(NamedTuple):
    records: memoryview  # Of the buffer that they were found in.
    next_offset: int  # Behind the last of them.
    is_past_end: bool  # The next batch is there, and is not wanted.


def whole_batches(
    records: memoryview, topic_partition: TopicPartition, offset: int, end_offset: int
) -> WholeBatches:
    """Those from `offset` on that end at `end_offset` or before, with their checksums right."""
    start = end = 0
    next_offset = offset
    is_past_end = False
    try:
        for position, header in iterate_headers(records):
            if header.last_offset < offset:
                continue  # An answer begins with the batch that holds the offset.
            if header.next_offset > end_offset:
                is_past_end = True
                break
            if header.base_offset < offset:
                raise CommandError(
                    f"{topic_partition} has a batch from {header.base_offset} to"
                    f" {header.last_offset}, where another one ended at {offset}: its log"
                    " is not the one that was copied before"
                )
            validate_checksum(records, position, header)
            start = start if end else position
            end, next_offset = position + header.size, header.next_offset
    except RecordError as error:
        raise CommandError(f"{topic_partition} at offset {next_offset}: {error}") from None
    return WholeBatches(records[start:end], next_offset, is_past_end)
