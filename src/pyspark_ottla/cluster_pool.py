"""Connections that a Python process keeps for the next task or plan.

Spark reuses its Python workers, and the requests of a micro-batch take less time than connecting.
Each borrower has a cluster to itself, which caches leaders and coordinators for at most a second.
After a borrower fails its cluster is closed, because responses may still be on their way to it.
"""

import atexit
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.security import Security

_IDLE_S_MAX = 30  # Less than the idle timeout of brokers and firewalls.
_IDLE_MAX = 4
_METADATA_S_MAX = 1.0  # Spans some micro-batches; short enough to notice new partitions.


class ClusterOptions(Protocol):
    """What distinguishes clusters, and how to connect to them."""

    @property
    def bootstrap_servers(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def retry_timeout_ms(self) -> int: ...
    @property
    def security(self) -> Security: ...
    def connect(self) -> Cluster: ...


class _Key(NamedTuple):
    bootstrap_servers: str
    client_id: str
    request_timeout_ms: int
    retry_timeout_ms: int
    security: Security


class _Idle(NamedTuple):
    cluster: Cluster
    since_s: float


_idle: dict[_Key, list[_Idle]] = defaultdict(list)


@contextmanager
def borrow(options: ClusterOptions) -> Iterator[Cluster]:
    """A cluster for exclusive use until the end of the block."""
    key = _Key(
        options.bootstrap_servers,
        options.client_id,
        options.request_timeout_ms,
        options.retry_timeout_ms,
        options.security,
    )
    cluster = _take(key) or options.connect()
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise
    _give_back(key, cluster)


@atexit.register
def close_idle() -> None:
    for idle in _idle.values():
        while idle:
            idle.pop().cluster.close()


def _take(key: _Key) -> Cluster | None:
    oldest_s = time.monotonic() - _IDLE_S_MAX
    while _idle[key]:
        idle = _idle[key].pop()
        if idle.since_s >= oldest_s:
            idle.cluster.forget_old_metadata(_METADATA_S_MAX)
            return idle.cluster
        idle.cluster.close()
    return None


def _give_back(key: _Key, cluster: Cluster) -> None:
    if len(_idle[key]) >= _IDLE_MAX:
        cluster.close()
        return
    _idle[key].append(_Idle(cluster, time.monotonic()))
