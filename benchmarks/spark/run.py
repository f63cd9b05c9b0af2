"""One run: its size, the compared sources, the topics that it fills, and its results."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.bench import Bench
from benchmarks.peers.peer import Flush
from benchmarks.results import Results
from benchmarks.spark.fill import fill

PARTITIONS = 2
DAY_MS = 86_400_000


@dataclass(frozen=True)
class Size:
    rounds: int
    read_rows: dict[int, int]  # Keyed by the size of values.
    written_rows: dict[int, int]
    filter_rows: int
    micro_batches: int
    partition_gigabytes: float


FULL = Size(
    rounds=3,
    read_rows={100: 4_000_000, 1024: 1_000_000},
    written_rows={100: 2_000_000, 1024: 300_000},
    filter_rows=10_000_000,
    micro_batches=60,
    partition_gigabytes=10,
)
SHORT = Size(
    rounds=1,
    read_rows={100: 500_000, 1024: 100_000},
    written_rows={100: 300_000, 1024: 50_000},
    filter_rows=1_000_000,
    micro_batches=15,
    partition_gigabytes=0.4,
)
EACH_VERSION = replace(
    FULL,
    read_rows={100: 2_000_000, 1024: 500_000},
    written_rows={100: 1_000_000, 1024: 150_000},
)


@dataclass
class Run:
    size: Size
    formats: list[str]  # The names in `spark.read.format(...)`.
    spark: SparkSession
    bench: Bench
    say: Callable[[str], None]
    results: Results = field(default_factory=Results)
    first_ms: int = field(default_factory=lambda: int(time.time() * 1000) - DAY_MS)

    @property
    def address(self) -> str:
        return self.address_of(Flush.OS)

    def address_of(self, flush: Flush) -> str:
        return self.bench.server(self.bench.peers[0], flush).address

    @contextmanager
    def topic(self, partitions: int = PARTITIONS, flush: Flush = Flush.OS) -> Iterator[str]:
        server = self.bench.server(self.bench.peers[0], flush)
        with self.bench.topic(server, flush, partitions) as topic:
            yield topic

    @contextmanager
    def filled_topic(
        self, rows: int, value_size: int, partitions: int = PARTITIONS
    ) -> Iterator[str]:
        with self.topic(partitions) as topic:
            self.say(f"filling a topic with {rows:,} records of {value_size} B")
            fill(self.address, topic, partitions, rows, value_size, self.first_ms)
            yield topic

    def read(self, source: str, topic: str) -> Any:
        reader = self.spark.read.format(source).option("subscribe", topic)
        return reader.option("kafka.bootstrap.servers", self.address).load()

    def in_turn(self, index: int) -> list[str]:
        """None is always first."""
        return self.formats if index % 2 else self.formats[::-1]


def timed(query: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and seconds."""
    began = time.perf_counter()
    found = query()
    return found, time.perf_counter() - began
