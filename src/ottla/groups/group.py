"""The interface of every type of group, whatever protocol its members use."""

from collections.abc import Iterable
from typing import Protocol

from ottla.machine.record import Record


class Group(Protocol):
    group_id: str

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def state_name(self) -> str:
        """As shown by ListGroups and DescribeGroups."""

    @property
    def type_name(self) -> str: ...

    @property
    def protocol_type_name(self) -> str:
        """Empty for a group that never had members."""

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        transactional: bool,
        api_version: int,
    ) -> None:
        """Raise ApiError unless the member may commit in this generation or member epoch."""

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def validate_offset_delete(self) -> None: ...

    def validate_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Also True if unknown: the offsets of the topic must not be deleted."""

    def offset_retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        """When the retention of an offset began (KIP-211); None while it must not expire."""

    def tombstones(self) -> Iterable[Record]:
        """The records that remove the group."""
