"""The common part of consumer group members and share group members."""

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

from ottla.groups.partitions import NOTHING, Assignment
from ottla.groups.record import Record, RecordValue
from ottla.protocol.entities import entity


class Subscription(NamedTuple):
    names: tuple[str, ...]  # Sorted.
    regex: str | None = None


@entity
class ModernMember(ABC):
    member_id: str
    instance_id: str | None = None  # For a static member; share groups have none.
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()  # Sorted.
    epoch: int = 0
    previous_epoch: int = -1
    assigned: Assignment = NOTHING

    @property
    def subscription(self) -> Subscription:
        return Subscription(self.subscribed_topic_names)

    @abstractmethod
    def metadata(self) -> RecordValue:
        """Everything but the epoch and the assignment."""

    @abstractmethod
    def metadata_record(self, group_id: str) -> Record: ...

    @abstractmethod
    def assignment_record(self, group_id: str) -> Record: ...

    @abstractmethod
    def with_metadata(self, value: RecordValue) -> Self: ...

    @abstractmethod
    def with_assignment(self, value: RecordValue | None) -> Self:
        """None: the member is in the group, but was never assigned anything."""
