"""Logs as brokers store them, batch by batch."""

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation, list_offsets
from ottla.records.batch import iterate_headers


def read_raw(
    cluster: Cluster,
    topic_partition: TopicPartition,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> bytes:
    offsets = [
        list_offsets(cluster, {topic_partition: end}, isolation)[topic_partition]
        for end in (EARLIEST, LATEST)
    ]
    offset, end = (each or 0 for each in offsets)
    data = b""
    with Fetcher(cluster, topic_partition, isolation, wait_ms=50) as fetcher:
        while offset < end:
            records = bytes(fetcher.fetch(offset).records)
            for position, header in iterate_headers(records):
                data += records[position : position + header.size]
                offset = header.next_offset
    return data


def without_epochs(data: bytes) -> bytes:
    buffer = bytearray(data)
    for position, _ in iterate_headers(data):
        buffer[position + 12 : position + 16] = bytes(4)
    return bytes(buffer)
