"""Everything that serves share groups on this broker."""

from collections.abc import Callable

from ottla.coordination.coordinators import Coordinators
from ottla.coordination.remote_log_ends import RemoteLogEnds
from ottla.coordination.share_coordinator import LocalShareCoordinator
from ottla.coordination.share_partitions import SharePartitions
from ottla.coordination.share_persister import SharePersister
from ottla.coordination.share_state_pruning import ShareStatePruning
from ottla.coordination.waiting_letters import WaitingLetters
from ottla.groups.share.config import ShareConfig
from ottla.groups.share.sessions import ShareSessions
from ottla.groups.share.state_coordinator import ShareStateMachine
from ottla.protocol.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ShareGroups:
    coordinators: Coordinators[ShareStateMachine]
    coordinator: LocalShareCoordinator  # For requests from other brokers to the coordinators here.
    persister: SharePersister
    partitions: SharePartitions
    sessions: ShareSessions
    pruning: ShareStatePruning
    waiting_letters: WaitingLetters
    remote_log_ends: RemoteLogEnds
    config: Callable[[str], ShareConfig]  # A group's effective configuration.
