"""What handlers use: the drivers of a node, and the context of a request.

Handlers are stateless; everything lasting is in one of these drivers.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from ottla.controller.effective_configs import EffectiveConfigs
from ottla.controller.image import MetadataImage
from ottla.controller.mutations import Caller
from ottla.coordination.coordinators import Coordinators
from ottla.coordination.pending_writes import PendingWrites
from ottla.coordination.remote_transactions import RemoteTransactions
from ottla.coordination.serving_coordinators import ServingCoordinators
from ottla.coordination.share_groups import ShareGroups
from ottla.coordination.transaction_completion import TransactionCompletion
from ottla.coordination.transaction_markers import TransactionMarkers
from ottla.network.durations import ApiCounters
from ottla.network.session import Session
from ottla.protocol.entities import entity
from ottla.replication.directory_moves import DirectoryMoves
from ottla.replication.follower_sessions import FollowerSessions
from ottla.replication.manager import ReplicaManager
from ottla.runtime.broker_connections import BrokerConnections
from ottla.runtime.client_metrics import ClientMetrics
from ottla.runtime.controller import Controller
from ottla.runtime.fenced_brokers import FencedBrokers
from ottla.runtime.process import Process
from ottla.runtime.producer_ids import ProducerIds
from ottla.runtime.quorum_requests import QuorumRequests
from ottla.security.authorizer import UNLIMITED, Access, Authorizer
from ottla.security.client_quotas import ClientQuotas
from ottla.storage.manager import LogManager

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine
    from ottla.transactions.coordinator import TransactionMachine

_NEVER: Final = 1 << 15  # No API has this version.


class TransactionDrivers(NamedTuple):
    coordinators: "Coordinators[TransactionMachine]"
    completion: TransactionCompletion
    markers: TransactionMarkers
    remote: RemoteTransactions  # Transactions coordinated by other brokers.
    pending_writes: PendingWrites


class Settings(NamedTuple):
    """What the configuration of the broker means for handlers."""

    fetch_bytes_max: int
    reads_from_nearest: bool  # Consumers are sent to the replica in their rack.
    api_versions: Mapping[int, tuple[int, int]]  # Lowest and highest version by API key.
    controller_listeners: frozenset[str] = frozenset()  # Reserved for controllers, as in Kafka.
    keys_off: frozenset[int] = frozenset()  # APIs disabled by the configuration.


@entity
class Broker:
    node_id: int
    cluster_id: str
    image: MetadataImage  # The committed metadata; replay updates it in place.
    controller: Controller
    quorum: QuorumRequests
    metadata_end_offset: Callable[[], int]  # Everything before it is in the image.
    connections: BrokerConnections
    fenced_brokers: FencedBrokers
    is_in_touch: Callable[[], bool]  # If not, others may lead what this broker still leads.
    configs: EffectiveConfigs
    producer_ids: ProducerIds
    replicas: ReplicaManager
    directory_moves: DirectoryMoves
    follower_sessions: FollowerSessions
    groups: "Coordinators[GroupMachine]"
    transactions: TransactionDrivers
    coordinators_elsewhere: ServingCoordinators
    share: ShareGroups
    logs: LogManager
    process: Process
    settings: Settings
    quotas: ClientQuotas
    client_metrics: ClientMetrics
    new_uuid: Callable[[], UUID]
    authorizer: Authorizer | None = None  # Without one, everything is allowed.
    apis: dict[int, ApiCounters] = field(default_factory=dict)  # By API key.


class RequestContext(NamedTuple):
    api_version: int
    client_id: str | None
    listener_name: str
    session: Session
    access: Access = UNLIMITED  # The client's permissions; see `authorization`.
    forwarded: Caller | None = None  # The client, if another node forwarded its request.

    def caller(self, *, strict_from: int = _NEVER) -> Caller:
        """The client; from version `strict_from` on its requests may be rejected for its quota."""
        if self.forwarded is not None:
            return self.forwarded
        session = self.session
        return Caller(
            session.principal,
            session.peer_address,
            self.client_id or "",
            is_strict=self.api_version >= strict_from,
            by_token=session.is_token_authenticated,
        )
