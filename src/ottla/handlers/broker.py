"""What handlers work with: the drivers of one node, and where a request came from.

Handlers hold no state; everything that lasts is in one of these drivers.
"""

from asyncio import AbstractEventLoop
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from ottla.controller.effective_configs import EffectiveConfigs
from ottla.controller.image import MetadataImage
from ottla.runtime.clock import Clock
from ottla.runtime.controller_client import ControllerClient
from ottla.runtime.producer_ids import ProducerIds
from ottla.runtime.supervisor import Supervisor
from ottla.storage.log import PartitionLog


class Partition(Protocol):
    """What cold handlers need of `replication.partition.Partition`."""

    leader_epoch: int

    @property
    def log(self) -> PartitionLog: ...

    def validate_leader_epoch(self, expected: int) -> None: ...


class Replicas(Protocol):
    """What cold handlers need of `replication.manager.ReplicaManager`."""

    def find(self, topic: str | UUID, index: int) -> Partition:
        """A partition that this broker leads, or ApiError."""


class LogDirectory(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def online(self) -> bool: ...

    @property
    def total_bytes(self) -> int:
        """Of the volume; -1 when it is not known."""

    @property
    def usable_bytes(self) -> int: ...

    @property
    def logs(self) -> Iterable[PartitionLog]: ...


class Logs(Protocol):
    """What cold handlers need of `storage.manager.LogManager`."""

    def directories(self) -> Iterable[LogDirectory]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    node_id: int
    cluster_id: str
    image: MetadataImage  # The committed metadata; replay changes it in place.
    controller: ControllerClient
    configs: EffectiveConfigs
    producer_ids: ProducerIds
    replicas: Replicas
    logs: Logs
    clock: Clock
    loop: AbstractEventLoop
    executor: Executor  # For what waits for the disk.
    supervisor: Supervisor
    fetch_bytes_max: int
    api_versions: Mapping[int, tuple[int, int]]  # Lowest and highest version by API key.


class Session(Protocol):
    """What cold handlers may know of a connection."""

    client_software_name: str | None
    client_software_version: str | None


class RequestContext(NamedTuple):
    api_version: int
    client_id: str | None
    listener_name: str
    session: Session
