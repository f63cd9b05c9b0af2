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
from typing import NamedTuple

from ottla.client.wire.cluster import Cluster
from pyspark_ottla.cluster_options import ClusterOptions

_IDLE_S_MAX = 30  # Less than the idle timeout of brokers and firewalls.
_IDLE_MAX = 4
_METADATA_S_MAX = 1.0  # Spans some micro-batches; short enough to notice new partitions.


class _Idle(NamedTuple):
    cluster: Cluster
    since_s: float


_idle: dict[ClusterOptions, list[_Idle]] = defaultdict(list)


@contextmanager
def borrow(options: ClusterOptions) -> Iterator[Cluster]:
    """A cluster for exclusive use until the end of the block."""
    cluster = _take(options) or options.connect()
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise
    _give_back(options, cluster)


@atexit.register
def close_idle() -> None:
    for idle in _idle.values():
        while idle:
            idle.pop().cluster.close()


def _take(options: ClusterOptions) -> Cluster | None:
    oldest_s = time.monotonic() - _IDLE_S_MAX
    while _idle[options]:
        idle = _idle[options].pop()
        if idle.since_s >= oldest_s:
            idle.cluster.forget_old_metadata(_METADATA_S_MAX)
            return idle.cluster
        idle.cluster.close()
    return None


def _give_back(options: ClusterOptions, cluster: Cluster) -> None:
    if len(_idle[options]) >= _IDLE_MAX:
        cluster.close()
        return
    _idle[options].append(_Idle(cluster, time.monotonic()))
