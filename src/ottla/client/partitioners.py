"""Choose a record's partition if `send` is not given one."""

import enum
import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

# Topic, key as given to `send`, number of partitions.
PartitionFunction = Callable[[str, Any, int], int]


class Partition(enum.Enum):
    """librdkafka's partitioners.

    MURMUR2 chooses the same partition for a key as the Java client. Records without a key stay with
    one partition for a while, so that batches fill.
    """

    MURMUR2 = "murmur2_random"
    CRC32 = "consistent_random"  # librdkafka's own default.
    STICKY = "random"  # Ignores keys.

    @property
    def settings(self) -> dict[str, Any]:
        return {"partitioner": self.value, "sticky.partitioning.linger.ms": 10}


Partitioner = Partition | PartitionFunction


def round_robin() -> PartitionFunction:
    """Cycles through the partitions of each topic; ignores keys."""
    counters: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)

    def choose(topic: str, _: Any, partitions: int) -> int:
        return next(counters[topic]) % partitions

    return choose


def key_modulo(_: str, key: Any, partitions: int) -> int:
    """`key % partitions`, for integer keys."""
    if isinstance(key, bool) or not isinstance(key, int):
        raise TypeError(f"key_modulo wants keys that are integers, not {key!r}")
    return key % partitions
