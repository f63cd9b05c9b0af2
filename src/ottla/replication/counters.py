"""What became of the partitions of this broker, in plain integers that the node exports."""

from ottla.protocol.lazy_dataclass import dataclass


@dataclass(slots=True)
class ReplicaCounters:
    """Only `fetches_waiting` ever falls."""

    leader_elections: int = 0  # New leaders of partitions that have a replica here.
    isr_shrinks: int = 0  # Of partitions led here.
    isr_expands: int = 0
    fetches_waiting: int = 0  # Of consumers, for records.
    fetches_from_disk: int = 0  # Those that had to be looked up in a thread.


@dataclass(slots=True)
class TopicTraffic:
    """Of all partitions of a topic that are, or were, on this broker.

    Records and bytes in are not counted batch by batch: they are how far the logs of partitions
    grew while this broker led them.
    """

    batches_in: int = 0  # One for each partition of a produce request.
    led_records: int = 0  # Of partitions that are led here no longer.
    led_bytes: int = 0
    reported_records: int = 0  # With those that are led, as last reported; only grows.
    told_bytes: int = 0
    fetches_out: int = 0  # One for each partition that consumers were sent records of.
    bytes_out: int = 0
    records_out: int = 0
    replication_bytes_in: int = 0  # From leaders.
