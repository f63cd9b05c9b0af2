"""The Prometheus page, one section after the other.

Rendering it occupies the interpreter for some milliseconds, and anything waiting for that would
wait for up to five: so it pauses after every few lines, and the event loop continues at once.
"""

import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import Final

from ottla.handlers.broker import Broker
from ottla.network.server import Server
from ottla.node.config import METRICS_GROUPS_MAX, METRICS_PARTITIONS, METRICS_TOPICS
from ottla.node.metrics import (
    clients,
    cluster,
    groups,
    locks,
    probes,
    requests,
    shares,
    storage,
    topics,
    transactions,
)
from ottla.node.metrics.family import Section
from ottla.node.metrics.lag import LagWatch
from ottla.node.metrics.loop_lag import LoopLag
from ottla.node.node_parts import Parts
from ottla.node.probe import ProbeCounters
from ottla.node.quorum import MetadataQuorum
from ottla.protocol.lazy_dataclass import dataclass
from ottla.transactions.config import TRANSACTION_MAX_TIMEOUT_MS

SECTIONS: Final[tuple[Section, ...]] = (
    requests.SECTION,
    locks.SECTION,
    cluster.SECTION,
    topics.SECTION,
    storage.SECTION,
    groups.SECTION,
    shares.SECTION,
    transactions.SECTION,
    probes.SECTION,
    clients.SECTION,
)

_LINES_AT_A_TIME: Final = 500  # A fraction of a millisecond.
_PAUSE_S: Final = 0.000_05
_PACK_LEVEL: Final = 1
_GZIP: Final = 31  # The largest window, and gzip's header.


@dataclass(slots=True, kw_only=True)
class Page:
    parts: Parts
    quorum: MetadataQuorum
    broker: Broker
    server: Server
    loop_lag: LoopLag
    lag_watch: LagWatch
    probed: Mapping[int, ProbeCounters]
    process: Callable[[], bytes]  # Metrics of the process, its memory and files.
    _rebalances: groups.Rebalances = field(init=False, default_factory=groups.Rebalances)
    # One page at a time.
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def render(self, *, packed: bool = False) -> bytes:
        """Call in a separate thread; `packed` uses gzip. Few lines are in memory at a time."""
        packer = zlib.compressobj(_PACK_LEVEL, wbits=_GZIP) if packed else None
        page = bytearray()
        for data in self.chunks():
            page += data if packer is None else packer.compress(data)
        return bytes(page if packer is None else page + packer.flush())

    def chunks(self) -> Iterator[bytes]:
        """Call in a separate thread: yields whole lines, with a pause after each chunk."""
        with self._lock:
            lines = self._lines()
            while some := list(islice(lines, _LINES_AT_A_TIME)):
                yield "".join(some).encode()
                time.sleep(_PAUSE_S)
            yield self.process()

    def _lines(self) -> Iterator[str]:
        parts, broker, server = self.parts, self.broker, self.server
        values, replicas = parts.values, parts.replicas
        now_ms, groups_max = parts.process.clock.now_ms(), values[METRICS_GROUPS_MAX]
        memory_limit = parts.network.queued_bytes_max
        yield from requests.collect(
            server, broker.apis, replicas, self.loop_lag, memory_limit=memory_limit
        )
        yield from locks.collect(server.counters, parts.quotas, parts.locks)
        yield from cluster.collect(parts.node_id, parts.feed.image, self.quorum)
        yield from topics.collect(
            parts.node_id,
            replicas,
            by_topic=values[METRICS_TOPICS],
            by_partition=values[METRICS_PARTITIONS],
        )
        yield from storage.collect(parts.logs, parts.flushes)
        yield from groups.collect(
            broker.groups, self.lag_watch, self._rebalances, now_ms, groups_max=groups_max
        )
        yield from shares.collect(broker.share.partitions, groups_max=groups_max)
        timeout_ms = values[TRANSACTION_MAX_TIMEOUT_MS]
        yield from transactions.collect(
            broker.transactions.coordinators, replicas, now_ms, timeout_ms=timeout_ms
        )
        yield from probes.collect(self.probed)
        yield from clients.collect(broker.client_metrics)
