"""What handlers work with: the drivers of one node, and where a request came from.

Handlers hold no state; everything that lasts is in one of these drivers.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

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
from ottla.replication.follower_sessions import FollowerSessions
from ottla.replication.manager import ReplicaManager
from ottla.runtime.broker_connections import BrokerConnections
from ottla.runtime.clock import Clock
from ottla.runtime.controller import Controller
from ottla.runtime.fenced_brokers import FencedBrokers
from ottla.runtime.producer_ids import ProducerIds
from ottla.runtime.quorum_requests import QuorumRequests
from ottla.runtime.supervisor import Supervisor
from ottla.security.authorizer import UNLIMITED, Access, Authorizer
from ottla.security.client_quotas import ClientQuotas
from ottla.storage.manager import LogManager

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine
    from ottla.transactions.coordinator import TransactionMachine


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    node_id: int
    cluster_id: str
    image: MetadataImage  # The committed metadata; replay changes it in place.
    controller: Controller
    quorum: QuorumRequests
    metadata_end_offset: Callable[[], int]  # Everything before it is in the image.
    connections: BrokerConnections
    fenced_brokers: FencedBrokers
    is_in_touch: Callable[[], bool]  # If not, others may lead what this broker still leads.
    configs: EffectiveConfigs
    producer_ids: ProducerIds
    replicas: ReplicaManager
    follower_sessions: FollowerSessions
    groups: "Coordinators[GroupMachine]"
    transactions: "Coordinators[TransactionMachine]"
    coordinators_elsewhere: ServingCoordinators
    completion: TransactionCompletion
    markers: TransactionMarkers
    remote_transactions: RemoteTransactions  # What other brokers coordinate.
    pending_writes: PendingWrites
    share: ShareGroups
    logs: LogManager
    clock: Clock
    loop: AbstractEventLoop
    executor: Executor  # For what waits for the disk.
    supervisor: Supervisor
    quotas: ClientQuotas
    fetch_bytes_max: int
    reads_from_nearest: bool  # Consumers are sent to the replica in their rack.
    api_versions: Mapping[int, tuple[int, int]]  # Lowest and highest version by API key.
    authorizer: Authorizer | None = None  # Without one, everyone may do everything.
    apis: dict[int, ApiCounters] = field(default_factory=dict)  # By API key.


class RequestContext(NamedTuple):
    api_version: int
    client_id: str | None
    listener_name: str
    session: Session
    access: Access = UNLIMITED  # What the client may do; see `authorization` for its use.

    def caller(self, *, strict_from: int) -> Caller:
        """The client, whose requests may be refused for its quota from this version on."""
        user, version = self.session.principal.name, self.api_version
        return Caller(user, self.client_id or "", version >= strict_from)
