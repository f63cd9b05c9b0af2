"""Connects a node's metrics with their sources."""

from collections.abc import Awaitable, Callable
from typing import Any

from ottla import __version__
from ottla.handlers.broker import Broker
from ottla.network.server import Server
from ottla.node.config import (
    METRICS_GROUPS_MAX,
    METRICS_LAG_INTERVAL_MS,
    METRICS_PARTITIONS,
    METRICS_TOPICS,
    PROBE_INTERVAL_MS,
)
from ottla.node.metrics.cluster import ClusterSources
from ottla.node.metrics.groups import GroupSources, Rebalances
from ottla.node.metrics.lag import LagWatch
from ottla.node.metrics.locks import LockSources
from ottla.node.metrics.loop_lag import LoopLag
from ottla.node.metrics.page import Page, Sources
from ottla.node.metrics.requests import RequestSources
from ottla.node.metrics.shares import ShareSources
from ottla.node.metrics.storage import StorageSources
from ottla.node.metrics.topics import TopicSources
from ottla.node.metrics.transactions import TransactionSources
from ottla.node.node_parts import Parts
from ottla.node.probe import Probe, ProbeCounters
from ottla.node.quorum import MetadataQuorum
from ottla.transactions.config import TRANSACTION_MAX_TIMEOUT_MS

Ask = Callable[[int, Any], Awaitable[Any]]  # Called with a broker id and a request.


def start_metrics(
    parts: Parts,
    quorum: MetadataQuorum,
    broker: Broker,
    server: Server,
    ask: Ask,
    process: Callable[[], bytes],
) -> Page:
    """`process` returns metrics of the process, its memory and files."""
    loop_lag = LoopLag(parts.process.loop.time)
    groups_max = parts.values[METRICS_GROUPS_MAX]
    interval_s = parts.values[METRICS_LAG_INTERVAL_MS] / 1000
    watch = LagWatch(parts, broker.groups, ask, interval_s=interval_s, groups_max=groups_max)
    probed: dict[int, ProbeCounters] = {}
    sources = _sources(parts, quorum, broker, server, loop_lag=loop_lag, watch=watch, probed=probed)
    parts.process.supervisor.start("event loop lag", loop_lag.watch())
    if groups_max:
        parts.process.supervisor.start("lag of groups", watch.watch())
    if parts.values[PROBE_INTERVAL_MS]:
        probe = _probe(parts, quorum, broker, ask, probed)
        parts.process.supervisor.start("probe", probe.watch())
    return Page(sources, process)


def identity(broker: Broker) -> dict[str, str]:
    """The node's identity, in OpenTelemetry's terms."""
    return {
        "service.name": "ottla",
        "service.version": __version__,
        "service.instance.id": str(broker.node_id),
        "ottla.cluster.id": broker.cluster_id,
    }


def _sources(
    parts: Parts,
    quorum: MetadataQuorum,
    broker: Broker,
    server: Server,
    *,
    loop_lag: LoopLag,
    watch: LagWatch,
    probed: dict[int, ProbeCounters],
) -> Sources:
    values, replicas, clock = parts.values, parts.replicas, parts.process.clock
    groups_max = values[METRICS_GROUPS_MAX]
    memory_limit = parts.network.queued_bytes_max
    return Sources(
        RequestSources(server, memory_limit, broker.apis, replicas, loop_lag),
        LockSources(server.counters, parts.quotas, parts.locks),
        ClusterSources(parts.node_id, parts.feed.image, quorum),
        TopicSources(parts.node_id, replicas, values[METRICS_TOPICS], values[METRICS_PARTITIONS]),
        StorageSources(parts.logs, parts.flushes),
        GroupSources(broker.groups, watch, Rebalances(), clock, groups_max),
        ShareSources(broker.share.partitions, groups_max),
        TransactionSources(
            broker.transactions, replicas, clock, values[TRANSACTION_MAX_TIMEOUT_MS]
        ),
        probed,
        broker.client_metrics,
    )


def _probe(
    parts: Parts,
    quorum: MetadataQuorum,
    broker: Broker,
    ask: Ask,
    probed: dict[int, ProbeCounters],
) -> Probe:
    return Probe(
        image=parts.feed.image,
        is_active=lambda: quorum.leadership.is_here,
        create_topics=broker.controller.call,
        ask=ask,
        clock=parts.process.clock,
        interval_s=parts.values[PROBE_INTERVAL_MS] / 1000,
        counters=probed,
    )
