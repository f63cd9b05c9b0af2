"""`/metrics` of a node, on a port of its own, in threads beside the event loop."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.handlers.broker import Broker
from ottla.handlers.table import API_TABLE
from ottla.network.counters import NetworkCounters
from ottla.node.config import METRICS_HOST, METRICS_PARTITIONS, METRICS_PORT
from ottla.node.parts import Parts
from ottla.node.quorum import MetadataQuorum

if TYPE_CHECKING:
    from ottla.node.metrics import NodeMetrics

logger = logging.getLogger(__name__)


def start_metrics(
    parts: Parts, quorum: MetadataQuorum, broker: Broker, network: NetworkCounters
) -> Callable[[], None]:
    """Returns what stops it, and waits. ValueError without the library, OSError without a port."""
    try:
        from ottla.node.metrics import LoopLag, NodeMetrics
    except ImportError as error:
        raise ValueError(
            f"{METRICS_PORT.name} is set, but {error.name} is missing: pip install 'ottla[metrics]'"
        ) from error
    loop_lag = LoopLag(parts.loop.time)
    parts.supervisor.start("event loop lag", loop_lag.watch())
    metrics = NodeMetrics(
        node_id=parts.node_id,
        network=network,
        request_counts=broker.request_counts,
        api_names={api.key: api.name for api in API_TABLE.values()},
        image=parts.feed.image,
        quorum=quorum,
        replicas=parts.replicas,
        logs=parts.logs,
        loop_lag=loop_lag,
        by_partition=parts.values[METRICS_PARTITIONS],
    )
    return _serve(parts.values[METRICS_HOST], parts.values[METRICS_PORT], metrics)


def _serve(host: str, port: int, metrics: "NodeMetrics") -> Callable[[], None]:
    from prometheus_client import (
        CollectorRegistry,
        GCCollector,
        PlatformCollector,
        ProcessCollector,
        start_http_server,
    )

    registry = CollectorRegistry()
    registry.register(metrics)
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise OSError(f"{METRICS_PORT.name} {port} of {host}: {error.strerror}") from error

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    logger.info("metrics are at http://%s:%d/metrics", host, server.server_port)
    return stop
