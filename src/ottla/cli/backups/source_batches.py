"""Batches of a partition of another cluster, in order and up to an offset."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.cli.backups.whole_batches import whole_batches
from ottla.cli.errors import CommandError
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.fetching import Fetcher

# A broker that throttles a client answers with nothing, so it is asked more than once.
EMPTY_ANSWERS_MAX: Final = 6


class SourceBatches(NamedTuple):
    records: memoryview  # Whole batches, good until the next ones are asked for; or none.
    next_offset: int


def source_batches(
    fetcher: Fetcher, topic_partition: TopicPartition, offset: int, end_offset: int
) -> Iterator[SourceBatches]:
    """All between the offsets; the last ones end at `end_offset`, if only as a gap."""
    empty_count = 0
    while offset < end_offset:
        fetched = fetcher.fetch(offset)
        found = whole_batches(fetched.records, topic_partition, offset, end_offset)
        if found.next_offset == offset:
            empty_count += 1
            if fetched.last_stable_offset < end_offset:
                raise CommandError(
                    f"{topic_partition} ends at {fetched.last_stable_offset}, and ended at"
                    f" {end_offset}"
                )
            if found.is_past_end or empty_count > EMPTY_ANSWERS_MAX:
                yield SourceBatches(fetched.records[:0], end_offset)
                return
            continue
        empty_count = 0
        if found.next_offset < end_offset:
            fetcher.ask(found.next_offset)
        yield SourceBatches(fetched.records[found.start : found.end], found.next_offset)
        offset = found.next_offset
