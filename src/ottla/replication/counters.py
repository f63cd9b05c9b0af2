"""What became of the partitions of this broker, in plain integers that the node exports."""

from dataclasses import dataclass


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
    """Of all partitions of a topic that are, or were, on this broker."""

    batches_in: int = 0  # One for each partition of a produce request.
    bytes_in: int = 0
    records_in: int = 0
    fetches_out: int = 0  # One for each partition that consumers were sent records of.
    bytes_out: int = 0
    records_out: int = 0
    copied_bytes_in: int = 0  # From leaders.
