"""Connects replication on this node: fetchers of followed, in-sync sets of led partitions."""

from collections.abc import Callable

from ottla.node.node_parts import Parts
from ottla.node.role_reports import role_reports
from ottla.replication.config import (
    REPLICA_FETCH_BACKOFF_MS,
    REPLICA_FETCH_MAX_BYTES,
    REPLICA_FETCH_MIN_BYTES,
    REPLICA_FETCH_RESPONSE_MAX_BYTES,
    REPLICA_FETCH_WAIT_MAX_MS,
    REPLICA_SOCKET_TIMEOUT_MS,
)
from ottla.replication.damaged_replicas import DamagedReplicas, RepairSettings
from ottla.replication.isr_changes import IsrChanges
from ottla.replication.manager import FollowingListener
from ottla.replication.replica_fetcher import FetcherSettings, FetcherTools
from ottla.replication.replica_fetchers import ReplicaFetchers
from ottla.runtime.controller import Controller


def connect_replication(
    parts: Parts, controller: Controller, broker_epoch: Callable[[], int]
) -> DamagedReplicas:
    """Connect the replica manager to fetchers and ISR changes, before it sets up partitions."""
    values, replicas, supervisor = parts.values, parts.replicas, parts.process.supervisor
    fetchers = ReplicaFetchers(
        parts.peers,
        parts.brokers.address_of,
        values[REPLICA_SOCKET_TIMEOUT_MS],
        FetcherSettings(
            node_id=parts.node_id,
            wait_max_ms=values[REPLICA_FETCH_WAIT_MAX_MS],
            min_bytes=values[REPLICA_FETCH_MIN_BYTES],
            bytes_max=values[REPLICA_FETCH_MAX_BYTES],
            response_bytes_max=values[REPLICA_FETCH_RESPONSE_MAX_BYTES],
            backoff_max_ms=values[REPLICA_FETCH_BACKOFF_MS],
        ),
        FetcherTools(
            broker_epoch=broker_epoch,
            logs=parts.logs,
            executor=parts.process.executor,
            supervisor=supervisor,
            loop=parts.process.loop,
            on_truncated=replicas.on_truncated,
            throttle=replicas.throttle,
        ),
    )
    changes = IsrChanges(
        parts.node_id,
        broker_epoch,
        controller.call,
        parts.process.clock,
        supervisor,
    )
    replicas.role_listeners.append(role_reports(parts.node_id, parts.process.loop))
    replicas.following_listeners.append(
        FollowingListener(fetchers.follow, fetchers.unfollow, changes.submit)
    )
    return DamagedReplicas(
        RepairSettings(parts.node_id, broker_epoch, parts.environment.random),
        parts.logs,
        replicas,
        controller.call,
        fetchers.truncate,
        supervisor,
    )
