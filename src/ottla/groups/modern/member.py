"""The common part of the members of all groups that the coordinator assigns."""

from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from ottla.machine.record import RecordValue
from ottla.protocol.entities import entity

A = TypeVar("A")  # What is assigned: partitions, or the tasks of a streams group.


class Subscription(NamedTuple):
    names: tuple[str, ...]  # Sorted.
    regex: str | None = None


@entity
class ModernMember(ABC, Generic[A]):
    METADATA: ClassVar[type[Any]]  # The record value; its fields are those of the member.

    member_id: str
    instance_id: str | None = None  # For a static member; only consumer groups have these.
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()  # Sorted. Streams groups have a topology instead.
    epoch: int = 0
    previous_epoch: int = -1
    assigned: A

    def updated(self, **given: Any) -> Self:
        """With the given values, except those that are None: these stay as they are."""
        changes = {
            name: value
            for name, value in given.items()
            if value is not None and value != getattr(self, name)
        }
        return replace(self, **changes) if changes else self

    @property
    def subscription(self) -> Subscription:
        return Subscription(self.subscribed_topic_names)

    @property
    def uses_classic_protocol(self) -> bool:
        return False

    @property
    def revocation_timeout_ms(self) -> int | None:
        """How long the member may take to give up what it must; None if that is nothing."""
        return None

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether the member has what the target of this epoch gives it."""
        return self.epoch == epoch

    def metadata(self) -> RecordValue:
        """Everything but the epoch and the assignment."""
        value: RecordValue = self.METADATA(
            **{each.name: getattr(self, each.name) for each in fields(self.METADATA)}
        )
        return value

    def with_metadata(self, value: RecordValue) -> Self:
        assert isinstance(value, self.METADATA)
        changes = {each.name: getattr(value, each.name) for each in fields(value)}
        names = changes.get("subscribed_topic_names", ())
        changes["subscribed_topic_names"] = tuple(sorted(set(names)))
        return replace(self, **changes)

    @abstractmethod
    def assignment(self) -> RecordValue: ...

    @abstractmethod
    def with_assignment(self, value: RecordValue) -> Self: ...

    @abstractmethod
    def without_assignment(self) -> Self:
        """The member is in the group, but was never assigned anything."""
