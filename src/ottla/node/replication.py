"""Connects replication on this node: fetchers of followed, in-sync sets of led partitions."""

from collections.abc import Callable
from typing import Any, Final

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    FENCE,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from ottla.network.peers import Peers, PeerUnreachable
from ottla.node.node_parts import Parts
from ottla.node.role_reports import role_reports
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode
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

ASK_TIMEOUT_MS: Final = 4_000  # Longer than a broker waits for markers to be committed.


def connect_replication(
    parts: Parts,
    controller: Controller,
    broker_epoch: Callable[[], int],
    address_of: Callable[[int], Address | None],
) -> DamagedReplicas:
    """Connect the replica manager to fetchers and ISR changes, before it sets up partitions."""
    values, replicas, supervisor = parts.values, parts.replicas, parts.process.supervisor
    fetchers = ReplicaFetchers(
        parts.peers,
        address_of,
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
    replicas.listen_to_roles(role_reports(parts.node_id, parts.process.loop))
    replicas.listen_to_following(
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


def broker_address(image: MetadataImage, broker_id: int, listener_name: str) -> Address | None:
    """A broker's address for other brokers: its listener with this name, or its first."""
    broker = image.brokers.get(broker_id)
    if broker is None or not broker.end_points:
        return None
    named = [point for point in broker.end_points if point.name == listener_name]
    end_point = (named or broker.end_points)[0]
    return Address(end_point.host, int(end_point.port))


def expect_brokers(
    peers: Peers, address_of: Callable[[int], Address | None]
) -> Callable[[object, MetadataImage], None]:
    """A metadata listener: a returning broker is contacted at once."""

    def on_record(record: object, _: MetadataImage) -> None:
        if not isinstance(record, RegisterBrokerRecord | BrokerRegistrationChangeRecord):
            return
        goes = isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == FENCE
        address = None if goes else address_of(record.broker_id)
        if address is not None:
            peers.expect(address)

    return on_record


async def ask_broker(
    peers: Peers,
    address_of: Callable[[int], Address | None],
    purpose: str,
    broker_id: int,
    request: Any,
    timeout_ms: float = ASK_TIMEOUT_MS,
) -> Any:
    """Uses the newest version of the request; ApiError if no response came."""
    address = address_of(broker_id)
    if address is None:
        raise ApiError(ErrorCode.coordinator_not_available, f"broker {broker_id} has no address")
    try:
        return await peers.call(
            address,
            request,
            timeout_ms=timeout_ms,
            purpose=purpose,
        )
    except PeerUnreachable as error:
        raise ApiError(ErrorCode.coordinator_not_available, str(error)) from error
