"""What a node tells Prometheus.

The hot path counts in plain integers; they are read here, in the scraper's thread, when somebody
asks. The event loop goes on meanwhile, so a scrape may see one number a moment later than another.

Labels are bounded: APIs, reasons, directories, and the topics and partitions of this node, which
`metrics.partitions` leaves out.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ottla import __version__
from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.network.counters import NetworkCounters
from ottla.node.quorum import MetadataQuorum
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import Partition
from ottla.storage.manager import LogManager

T = TypeVar("T")

LAG_INTERVAL_S: Final = 0.25
_LAGS_KEPT: Final = 120  # 30 s, so that a scrape every 15 s misses none.


class LoopLag:
    """How late the event loop is: what every request waits before anybody looks at it."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lags_s = [0.0] * _LAGS_KEPT
        self._next = 0

    async def watch(self) -> None:
        while True:
            due_s = self._now_s() + LAG_INTERVAL_S
            await asyncio.sleep(LAG_INTERVAL_S)
            self._lags_s[self._next] = max(0.0, self._now_s() - due_s)
            self._next = (self._next + 1) % _LAGS_KEPT

    @property
    def worst_s(self) -> float:
        return max(self._lags_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeMetrics(Collector):
    node_id: int
    network: NetworkCounters
    request_counts: Mapping[int, int]  # By API key.
    api_names: Mapping[int, str]
    image: MetadataImage
    quorum: MetadataQuorum
    replicas: ReplicaManager
    logs: LogManager
    loop_lag: LoopLag
    by_partition: bool

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily("ottla_build_info", "1.", labels=["version", "node_id"])
        info.add_metric([__version__, str(self.node_id)], 1)
        yield info
        yield _gauge(
            "ottla_event_loop_lag_seconds",
            "How late the event loop was at worst in the last 30 seconds.",
            self.loop_lag.worst_s,
        )
        yield from self._connections()
        yield from self._requests()
        yield from self._cluster()
        yield from self._directories()
        yield from self._partitions()

    def _connections(self) -> Iterator[Metric]:
        network = self.network
        yield _gauge("ottla_connections", "Open connections.", network.connections_open)
        yield _gauge(
            "ottla_connections_paused",
            "Connections that are not read from, because one of their bounds is passed.",
            network.sessions_paused,
        )
        yield _counter(
            "ottla_connections_accepted", "Accepted connections.", network.connections_accepted
        )
        yield _counters(
            "ottla_connections_refused",
            "Connections that were refused or failed to be made.",
            "reason",
            dict(network.connections_refused),
        )
        yield _counters(
            "ottla_connections_closed",
            "Connections that the node closed.",
            "reason",
            {
                "idle": network.connections_closed_idle,
                "stalled": network.connections_closed_stalled,
            },
        )
        yield _counter("ottla_received_bytes", "Bytes received.", network.bytes_in)
        yield _counter("ottla_sent_bytes", "Bytes sent.", network.bytes_out)
        yield _counter(
            "ottla_sendfile_bytes",
            "Those of the bytes sent that went from file to socket in the kernel.",
            network.bytes_sent_by_sendfile,
        )

    def _requests(self) -> Iterator[Metric]:
        network = self.network
        counts = {
            self.api_names.get(key, str(key)): count
            for key, count in sorted(dict(self.request_counts).items())
        }
        yield _counters("ottla_requests", "Requests.", "api", counts)
        yield _counter(
            "ottla_requests_malformed",
            "Requests that broke the protocol; their connections were closed.",
            network.frames_malformed,
        )
        yield _counter(
            "ottla_requests_failed",
            "Requests that met a fault of the broker, which its log tells of.",
            network.dispatch_failures,
        )
        yield _counter(
            "ottla_memory_waits",
            "Times that a connection waited, because the memory for requests was short.",
            network.memory_waits,
        )
        yield _counter(
            "ottla_page_cache_misses",
            "Reads for consumers that had to wait for the disk.",
            network.file_reads_in_thread,
        )

    def _cluster(self) -> Iterator[Metric]:
        brokers = list(self.image.brokers.values())
        fenced_count = sum(broker.fenced for broker in brokers)
        states = {"active": len(brokers) - fenced_count, "fenced": fenced_count}
        yield _gauges("ottla_brokers", "Registered brokers.", "state", states)
        yield _gauge(
            "ottla_controller",
            "1 on the node whose controller is at work.",
            int(self.quorum.leadership.is_here),
        )
        core = self.quorum.driver.core
        yield _gauge(
            "ottla_quorum_epoch",
            "The epoch of the metadata quorum; it grows with each election.",
            -1 if core is None else core.state.epoch,
        )
        leader_id = self.quorum.leadership.leader_id
        yield _gauge(
            "ottla_quorum_leader_id",
            "The node that leads the metadata quorum; -1 when none is known.",
            -1 if leader_id is None else leader_id,
        )
        topics = list(self.image.topics.values())
        yield _gauge("ottla_topics", "Topics of the cluster.", len(topics))
        yield _gauge(
            "ottla_offline_partitions",
            "Partitions of the cluster that have no leader.",
            sum(
                state.leader == NO_LEADER
                for topic in topics
                for state in list(topic.partitions.values())
            ),
        )

    def _directories(self) -> Iterator[Metric]:
        directories = self.logs.directories()
        yield _gauges(
            "ottla_log_directory_online",
            "1 unless the directory has failed.",
            "directory",
            {one.path: int(one.online) for one in directories},
        )
        yield _gauges(
            "ottla_log_directory_size_bytes",
            "The size of the volume.",
            "directory",
            {one.path: one.total_bytes for one in directories if one.total_bytes >= 0},
        )
        yield _gauges(
            "ottla_log_directory_free_bytes",
            "What is free of the volume.",
            "directory",
            {one.path: one.usable_bytes for one in directories if one.usable_bytes >= 0},
        )

    def _partitions(self) -> Iterator[Metric]:
        partitions = _copied(self.replicas.partitions)
        led = [partition for partition in partitions if partition.is_leader]
        yield _gauge("ottla_partitions", "Replicas on this node.", len(partitions))
        yield _gauge("ottla_leader_partitions", "Partitions that this node leads.", len(led))
        yield _gauge(
            "ottla_under_replicated_partitions",
            "Partitions led here with replicas that are not in sync.",
            sum(_replicas_count(one) > len(one.in_sync_replicas) for one in led),
        )
        yield _gauge(
            "ottla_under_min_isr_partitions",
            "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
            sum(_is_under_minimum(one) for one in led),
        )
        yield _gauge(
            "ottla_damaged_logs",
            "Replicas here of which some offsets are damaged, or all.",
            len(self.logs.damaged) + len(self.logs.corrupt),
        )
        if self.by_partition:
            yield from self._by_partition(partitions)

    def _by_partition(self, partitions: Iterable[Partition]) -> Iterator[Metric]:
        labels = ["topic", "partition"]
        families = [
            GaugeMetricFamily(f"ottla_partition_{name}", text, labels=labels)
            for name, text in _PARTITION_GAUGES.items()
        ]
        for partition in partitions:
            log = partition.log
            topic, index = log.topic_partition
            values = (
                log.log_start_offset,
                log.log_end_offset,
                log.high_watermark,
                log.size,
                len(log.segments),
                int(partition.is_leader),
                len(partition.in_sync_replicas) if partition.is_leader else 0,
            )
            for family, value in zip(families, values, strict=True):
                family.add_metric([topic, str(index)], value)
        yield from families


_PARTITION_GAUGES: Final = {
    "start_offset": "The first offset that is kept.",
    "end_offset": "The offset of the next record; its rate on the leader is records in a second.",
    "high_watermark": "Consumers see the records before this offset.",
    "size_bytes": "The size of the log.",
    "segments": "The segments of the log.",
    "is_leader": "1 on the leader.",
    "in_sync_replicas": "Of the leader: how many replicas are in sync. 0 on followers.",
}


def _replicas_count(partition: Partition) -> int:
    followers = partition.followers
    return 1 if followers is None else followers.established_count


def _is_under_minimum(partition: Partition) -> bool:
    required = min(partition.log.config.min_insync_replicas, _replicas_count(partition))
    return len(partition.in_sync_replicas) < required


def _copied(iterate: Callable[[], Iterable[T]]) -> list[T]:
    """What another thread may be changing."""
    while True:
        try:
            return list(iterate())
        except RuntimeError:  # A dict has changed its size.
            continue


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    return _filled(GaugeMetricFamily(name, text, labels=[label]), values)


def _counters(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    return _filled(CounterMetricFamily(name, text, labels=[label]), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[str, float]) -> Metric:
    for value, number in values.items():
        family.add_metric([value], number)
    return family
