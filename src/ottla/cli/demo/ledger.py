"""What was written and what was read of it, for the demonstration of a failover.

Records are numbered. Number n is written to partition n % partitions, so the numbers of a partition
must be read in ascending order, each once.
"""

import statistics
from collections import Counter
from typing import NamedTuple


class Latency(NamedTuple):
    """In milliseconds."""

    median: float
    p99: float
    longest: float


class Ledger:
    """One thread tells of writes, another of reads; any may look."""

    def __init__(self, partitions: int) -> None:
        self.sent_count = 0
        self.failed_count = 0
        self.read_count = 0
        self.duplicate_count = 0
        self.disorder_count = 0
        self.longest_pause_s = 0.0  # Of one partition, between two acknowledgements.
        self.by_second: Counter[int] = Counter()  # Acknowledgements.
        self._partitions = partitions
        self._acknowledged: set[int] = set()
        self._read: set[int] = set()
        self._skipped: set[int] = set()  # Not read before those behind them.
        self._next = list(range(partitions))
        self._last_acknowledged_s: dict[int, float] = {}
        self._latencies_ms: list[float] = []

    @property
    def acknowledged_count(self) -> int:
        return len(self._acknowledged)

    @property
    def lag(self) -> int:
        """Acknowledged, and not read yet."""
        return max(0, len(self._acknowledged) - len(self._read))

    @property
    def lost_so_far(self) -> int:
        """Acknowledged, and missing before something that was read."""
        return len(self._skipped & self._acknowledged)

    @property
    def lost_count(self) -> int:
        """When everything that is there was read."""
        return len(self._acknowledged - self._read)

    def on_acknowledged(self, number: int, latency_ms: float, now_s: float) -> None:
        """`now_s` counts from the beginning; the first records, which connect, come before that."""
        self._acknowledged.add(number)
        if now_s < 0:
            return
        self._latencies_ms.append(latency_ms)
        self.by_second[int(now_s)] += 1
        partition = number % self._partitions
        pause_s = now_s - self._last_acknowledged_s.get(partition, now_s)
        self.longest_pause_s = max(self.longest_pause_s, pause_s)
        self._last_acknowledged_s[partition] = now_s

    def on_failed(self) -> None:
        """A record of which nobody has said that it is written may be there or not."""
        self.failed_count += 1

    def on_read(self, number: int) -> None:
        self.read_count += 1
        if number in self._read:
            self.duplicate_count += 1
            return
        self._read.add(number)
        partition = number % self._partitions
        expected = self._next[partition]
        if number < expected:
            self.disorder_count += 1
            self._skipped.discard(number)
            return
        self._skipped.update(range(expected, number, self._partitions))
        self._next[partition] = number + self._partitions

    def latency(self, last: int | None = None) -> Latency | None:
        """Of the `last` acknowledgements, or of all."""
        values = self._latencies_ms[-last:] if last else self._latencies_ms[:]
        if len(values) < 2:
            return None
        cuts = statistics.quantiles(values, n=100)
        return Latency(cuts[49], cuts[98], max(values))
