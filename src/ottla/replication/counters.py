"""Replication counters of this broker, as plain integers that the node exports."""

from ottla.protocol.lazy_dataclass import dataclass


@dataclass(slots=True)
class ReplicaCounters:
    """Only `fetches_waiting` ever decreases."""

    leader_elections: int = 0  # New leaders of partitions with a replica here.
    isr_shrinks: int = 0  # Of partitions led here.
    isr_expands: int = 0
    fetches_waiting: int = 0  # Consumer fetches waiting for records.
    fetches_from_disk: int = 0  # Fetches that needed a thread to read.


@dataclass(slots=True)
class TopicTraffic:
    """Counts a topic's partitions that are, or were, on this broker.

    Incoming records and bytes are not counted per batch: they are the growth of the partition logs
    while this broker led them.
    """

    batches_in: int = 0  # One per partition of a produce request.
    led_records: int = 0  # Of partitions no longer led here.
    led_bytes: int = 0
    reported_records: int = 0  # Includes the partitions still led, as last reported; only grows.
    reported_bytes: int = 0
    fetches_out: int = 0  # One per partition whose records were sent to a consumer.
    bytes_out: int = 0
    records_out: int = 0
    replication_bytes_in: int = 0  # From leaders.
