"""A member of a classic group."""

from collections.abc import Collection

from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.sync_group.v5.response import SyncGroupResponse

from ottla.groups.classic.records import MemberMetadata
from ottla.machine.result import Deferred
from ottla.protocol.lazy_dataclass import dataclass

Protocols = tuple[tuple[str, bytes], ...]  # Names and metadata, by preference.


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False  # Has not been in a generation yet.
    awaiting_join: Deferred[JoinGroupResponse] | None = None
    awaiting_sync: Deferred[SyncGroupResponse] | None = None

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_kept_alive_by_waiting(self) -> bool:
        """A waiting member cannot send heartbeats; but a new one may have gone away."""
        waits = self.awaiting_join is not None or self.awaiting_sync is not None
        return waits and not self.is_new

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Collection[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    def to_record(self, protocol: str | None) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=self.assignment,
        )

    @classmethod
    def from_record(cls, record: MemberMetadata, protocol: str | None) -> "ClassicMember":
        has_timeout = record.rebalance_timeout != -1
        return cls(
            member_id=record.member_id,
            group_instance_id=record.group_instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            session_timeout_ms=record.session_timeout,
            rebalance_timeout_ms=record.rebalance_timeout
            if has_timeout
            else record.session_timeout,
            protocols=((protocol or "", record.subscription),),
            assignment=record.assignment,
        )
