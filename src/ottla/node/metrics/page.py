"""The Prometheus page, one section after the other.

Rendering it occupies the interpreter for some milliseconds, and anything waiting for that would
wait for up to five: so it pauses after every few lines, and the event loop continues at once.
"""

import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

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
from ottla.node.probe import ProbeCounters
from ottla.runtime.client_metrics import ClientMetrics

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


class Sources(NamedTuple):
    requests: requests.RequestSources
    locks: locks.LockSources
    cluster: cluster.ClusterSources
    topics: topics.TopicSources
    storage: storage.StorageSources
    groups: groups.GroupSources
    shares: shares.ShareSources
    transactions: transactions.TransactionSources
    probed: Mapping[int, ProbeCounters]
    clients: ClientMetrics


class Page:
    def __init__(self, sources: Sources, process: Callable[[], bytes]) -> None:
        """`process` returns metrics of the process, its memory and files."""
        self._sources = sources
        self._process = process
        self._lock = threading.Lock()  # One page at a time.

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
            yield self._process()

    def _lines(self) -> Iterator[str]:
        sources = self._sources
        yield from requests.collect(sources.requests)
        yield from locks.collect(sources.locks)
        yield from cluster.collect(sources.cluster)
        yield from topics.collect(sources.topics)
        yield from storage.collect(sources.storage)
        yield from groups.collect(sources.groups)
        yield from shares.collect(sources.shares)
        yield from transactions.collect(sources.transactions)
        yield from probes.collect(sources.probed)
        yield from clients.collect(sources.clients)
