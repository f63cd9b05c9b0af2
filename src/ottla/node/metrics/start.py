"""Connects a node's metrics with their sources."""

from collections.abc import Callable

from ottla import __version__
from ottla.handlers.broker import Broker
from ottla.network.server import Server
from ottla.node.config import METRICS_GROUPS_MAX, METRICS_LAG_INTERVAL_MS, PROBE_INTERVAL_MS
from ottla.node.metrics.lag import LagWatch
from ottla.node.metrics.loop_lag import LoopLag
from ottla.node.metrics.page import Page
from ottla.node.node_parts import Parts
from ottla.node.probe import Probe, ProbeCounters
from ottla.node.quorum import MetadataQuorum


def start_metrics(
    parts: Parts,
    quorum: MetadataQuorum,
    broker: Broker,
    server: Server,
    process_page: Callable[[], bytes],
) -> Page:
    """`process_page` returns metrics of the process, its memory and files."""
    process, values, ask = parts.process, parts.values, parts.brokers.asking("metrics")
    loop_lag = LoopLag(process.loop.time)
    process.supervisor.start("event loop lag", loop_lag.watch())
    groups_max, interval_ms = values[METRICS_GROUPS_MAX], values[METRICS_LAG_INTERVAL_MS]
    lag_watch = LagWatch(
        parts=parts,
        groups=broker.groups,
        ask=ask,
        interval_s=interval_ms / 1000,
        groups_max=groups_max,
    )
    if groups_max:
        process.supervisor.start("lag of groups", lag_watch.watch())
    probed: dict[int, ProbeCounters] = {}
    if values[PROBE_INTERVAL_MS]:
        probe = Probe(
            image=parts.feed.image,
            is_active=lambda: quorum.leadership.is_here,
            create_topics=broker.controller.call,
            ask=ask,
            clock=process.clock,
            interval_s=values[PROBE_INTERVAL_MS] / 1000,
            counters=probed,
        )
        process.supervisor.start("probe", probe.watch())
    return Page(
        parts=parts,
        quorum=quorum,
        broker=broker,
        server=server,
        loop_lag=loop_lag,
        lag_watch=lag_watch,
        probed=probed,
        process=process_page,
    )


def identity(broker: Broker) -> dict[str, str]:
    """The node's identity, in OpenTelemetry's terms."""
    return {
        "service.name": "ottla",
        "service.version": __version__,
        "service.instance.id": str(broker.node_id),
        "ottla.cluster.id": broker.cluster_id,
    }
