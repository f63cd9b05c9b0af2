"""Read the records of one partition, one by one."""

from collections.abc import Iterator

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import OffsetOutOfRange
from ottla.client.wire.fetching import Fetched, Fetcher
from ottla.client.wire.offsets import EARLIEST, Isolation, list_offsets
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records
from ottla.records.isolation import Scan, scan_batches


def read_records(
    cluster: Cluster,
    topic_partition: TopicPartition,
    start: int,
    end: int,
    isolation: Isolation = Isolation.READ_COMMITTED,
) -> Iterator[Record]:
    """Those with offsets in [start, end) that are there; the log must reach the end."""
    with Fetcher(cluster, topic_partition, isolation) as fetcher:
        while start < end:
            try:
                fetched = fetcher.fetch(start)
            except OffsetOutOfRange:
                first = list_offsets(cluster, {topic_partition: EARLIEST})[topic_partition] or 0
                if first <= start:
                    raise
                start = first
                continue
            scan = scan_batches(fetched.records, start, end, fetched.aborted)
            yield from records_of(fetched, scan, start, end)
            start = scan.next_offset


def records_of(fetched: Fetched, scan: Scan, start: int, end: int) -> Iterator[Record]:
    """The scanned records with offsets in [start, end)."""
    for position, _ in scan.batches:
        for record in iterate_records(fetched.records, position, from_offset=start):
            if record.offset >= end:
                return
            yield record
