"""A classic group, while its coordinator is here.

Its record holds only the result of the last completed rebalance. Between two records the group
lives in this object: who is joining, whose reply is parked, which generation is being assigned.
None of that is replicated: operations change it directly, and a coordinator that takes over starts
from the record (`ClassicGroup.from_record`), as members find out with their next heartbeat. Two
rules keep this safe: an operation changes the group only after every check that can reject it has
passed, and when a record of the group cannot be appended the runtime drops the whole machine with
this object.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from kio.schema.join_group.v9.response import JoinGroupResponse

from ottla.groups.classic.member import ClassicMember, Protocols
from ottla.groups.classic.records import GroupMetadataValue, group_metadata, group_tombstone
from ottla.groups.classic.state import ClassicState, is_legal
from ottla.groups.consumer_protocol import subscribed_topics
from ottla.machine.record import Record
from ottla.machine.result import Deferred
from ottla.protocol.errors import ApiError, ErrorCode

CONSUMER_PROTOCOL_TYPE = "consumer"


class ClassicGroup:
    type_name = "classic"

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None  # None until the first member joins: a simple group.
        self.protocol: str | None = None
        self.leader: str | None = None  # Invariant: the id of a member, or None without members.
        self.members: dict[str, ClassicMember] = {}  # In the order in which they joined.
        self.static_members: dict[str, str] = {}  # Group instance id to member id.
        self.pending_members: set[str] = set()  # Given an id, but not yet joined with it (KIP-394).
        self.pending_syncs: set[str] = set()  # Members of this generation that have not synced yet.
        self.last_added_ms = now_ms  # When the newest member joined.
        self.subscribed: frozenset[str] | None = None  # None: unknown.
        self._offers: Counter[str] = Counter()  # Members per protocol.
        self._joining: set[str] = set()  # Invariant: members waiting for the end of their join.

    @classmethod
    def from_record(cls, group_id: str, record: GroupMetadataValue) -> "ClassicGroup":
        group = cls(group_id, record.current_state_timestamp)
        group.state = ClassicState.STABLE if record.members else ClassicState.EMPTY
        group.generation = record.generation
        group.protocol_type = record.protocol_type or None
        group.protocol = record.protocol
        for member in record.members:
            group._put(ClassicMember.from_record(member, record.protocol))
        group.leader = record.leader if record.leader in group.members else None
        group.refresh_subscription()
        return group

    def to_record(self) -> Record:
        return group_metadata(
            self.group_id,
            GroupMetadataValue(
                protocol_type=self.protocol_type or "",
                generation=self.generation,
                protocol=self.protocol,
                leader=self.leader,
                current_state_timestamp=self.state_since_ms,
                members=tuple(member.to_record(self.protocol) for member in self.members.values()),
            ),
        )

    # State.

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def is_unused(self) -> bool:
        """There are no members, present or pending."""
        return self.is_empty and not self.pending_members

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type_name(self) -> str:
        return self.protocol_type or ""

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def awaiting_join_count(self) -> int:
        return len(self._joining)

    @property
    def have_all_joined(self) -> bool:
        return not self.pending_members and self.awaiting_join_count == len(self.members)

    def is_leader(self, member_id: str) -> bool:
        return self.leader == member_id

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a member with these protocols can join so that all members still share one."""
        if self.is_empty:
            return bool(protocol_type and names)
        return protocol_type == self.protocol_type and any(map(self._is_common, names))

    def _is_common(self, protocol: str) -> bool:
        return self._offers[protocol] == len(self.members)

    def select_protocol(self) -> str:
        """Each member votes for its favourite common protocol; the earliest member breaks a tie."""
        candidates = {name for name in self._offers if self._is_common(name)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=votes.__getitem__)

    # Changes by operations.

    def transition_to(self, state: ClassicState, now_ms: int) -> None:
        assert is_legal(self.state, state), f"{self.group_id}: {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    def begin_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.pending_syncs.clear()
        if self.members:
            self.protocol = self.select_protocol()
            self.transition_to(ClassicState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol = None
            self.transition_to(ClassicState.EMPTY, now_ms)
        self.refresh_subscription()

    def refresh_subscription(self) -> None:
        if not self.uses_consumer_protocol:
            self.subscribed = None
        else:
            # Most members of a large group have the same metadata.
            distinct = {member.metadata(self.protocol) for member in self.members.values()}
            self.subscribed = subscribed_topics(distinct)

    def add(self, member: ClassicMember, protocol_type: str, now_ms: int) -> None:
        assert member.group_instance_id not in self.static_members
        if not self.members:
            self.protocol_type = protocol_type
        self._put(member)
        self.leader = self.leader or member.member_id
        self.pending_members.discard(member.member_id)
        self.last_added_ms = now_ms

    def _put(self, member: ClassicMember) -> None:
        self.members[member.member_id] = member
        self._offers.update(name for name, _ in member.protocols)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def _take(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self._joining.discard(member_id)
        self._offers.subtract(name for name, _ in member.protocols)
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]

    def update(
        self,
        member: ClassicMember,
        protocols: Protocols,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        self._offers.subtract(name for name, _ in member.protocols)
        self._offers.update(name for name, _ in protocols)
        member.protocols = protocols
        member.session_timeout_ms = session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms

    def await_join(self, member: ClassicMember, reply: Deferred[JoinGroupResponse]) -> None:
        member.awaiting_join = reply
        self._joining.add(member.member_id)

    def end_join(self, member: ClassicMember) -> None:
        member.awaiting_join = None
        self._joining.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Forget a member or a pending one; the next earliest member then leads."""
        if member_id in self.members:
            self._take(member_id)
        if self.is_leader(member_id):
            self.leader = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, old_member_id: str, member: ClassicMember) -> None:
        """The instance returned with a new member id, which replaces the old one."""
        self._take(old_member_id)
        self._put(member)
        self.pending_syncs.discard(old_member_id)
        if self.is_leader(old_member_id):
            self.leader = member.member_id

    def elect_joined_leader(self) -> bool:
        """The leader must be in the new generation; False if no member has rejoined."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is None:
            rejoined = (member for member in self.members.values() if member.awaiting_join)
            self.leader = next((member.member_id for member in rejoined), self.leader)
        return self.members[self.leader].awaiting_join is not None

    # Validation.

    def validate_member(self, member_id: str, group_instance_id: str | None) -> None:
        if group_instance_id is not None:
            existing = self.static_members.get(group_instance_id)
            if existing is None:
                raise ApiError(ErrorCode.unknown_member_id)
            if existing != member_id:
                raise ApiError(
                    ErrorCode.fenced_instance_id,
                    f"instance {group_instance_id} has a newer member than {member_id}",
                )
        if member_id not in self.members:
            raise ApiError(ErrorCode.unknown_member_id)

    def validate_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise ApiError(
                ErrorCode.illegal_generation,
                f"the group is in generation {self.generation}, not {generation}",
            )

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation: int,
        *,
        transactional: bool,
        api_version: int,  # noqa: ARG002
    ) -> None:
        if generation < 0 and self.is_empty:
            return  # The group only stores offsets, or an operator resets them.
        if generation >= 0 or member_id or group_instance_id is not None:
            self.validate_member(member_id, group_instance_id)
            self.validate_generation(generation)
        elif not transactional:
            raise ApiError(
                ErrorCode.unknown_member_id, "the group has members; only they commit offsets"
            )
        if not transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise ApiError(ErrorCode.rebalance_in_progress)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anyone may read the offsets of a classic group."""

    def validate_offset_delete(self) -> None:
        if not self.is_empty and not self.uses_consumer_protocol:
            raise ApiError(ErrorCode.non_empty_group, "the group has members")

    def validate_delete(self) -> None:
        if not self.is_empty:
            raise ApiError(ErrorCode.non_empty_group, "the group has members")

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed

    def offset_retention_start_ms(self, commit_timestamp_ms: int) -> int | None:
        if self.protocol_type is None:
            return commit_timestamp_ms
        if self.is_empty:
            return self.state_since_ms if self.state_since_ms >= 0 else commit_timestamp_ms
        if self.state is ClassicState.STABLE and self.subscribed is not None:
            return commit_timestamp_ms
        return None

    def tombstones(self) -> Iterable[Record]:
        return (group_tombstone(self.group_id),)
