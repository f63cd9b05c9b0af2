"""The machine of one partition of `__consumer_offsets`: every operation on its groups.

A group lives on the partition that `machine.partitioning` returns for its id. The runtime that
leads the partition replays its log, calls `on_loaded` once, and then submits operations. Operations
raise ApiError if a request is rejected as a whole; errors of its parts are in the response. A reply
may be a Deferred: JoinGroup and SyncGroup wait for other members.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from kio.schema.consumer_group_describe.v1.response import (
    DescribedGroup as DescribedConsumerGroup,
)
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.delete_groups.v2.response import DeletableGroupResult
from kio.schema.describe_groups.v6.response import DescribedGroup
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListedGroup
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.offset_delete.v0.response import OffsetDeleteResponse
from kio.schema.share_group_describe.v1.response import DescribedGroup as DescribedShareGroup
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.share_group_heartbeat.v1.response import ShareGroupHeartbeatResponse
from kio.schema.streams_group_describe.v0.response import DescribedGroup as DescribedStreamsGroup
from kio.schema.streams_group_heartbeat.v0.request import StreamsGroupHeartbeatRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId

from ottla.groups.absences import AbsenceKey, AbsenceValue
from ottla.groups.caller import Caller
from ottla.groups.classic.describe import describe, describe_missing
from ottla.groups.classic.join import ClassicJoin
from ottla.groups.classic.membership import ClassicMembership
from ottla.groups.classic.rebalance import ClassicRebalance
from ottla.groups.classic.records import GroupMetadataKey, GroupMetadataValue, group_metadata
from ottla.groups.classic.state import ClassicState
from ottla.groups.consumer import describe as consumer_describe
from ottla.groups.consumer.classic_members import ClassicMembers
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import ConsumerHeartbeat
from ottla.groups.consumer.migration import Migration
from ottla.groups.consumer.progress import Progress
from ottla.groups.consumer.records import CONSUMER_KEYS
from ottla.groups.consumer.sessions import ConsumerSessions
from ottla.groups.modern.group import ModernGroup
from ottla.groups.offsets import removal
from ottla.groups.offsets.commit import OffsetCommits
from ottla.groups.offsets.fetch import fetch_offsets
from ottla.groups.offsets.records import OffsetCommitRecord
from ottla.groups.offsets.store import Committed
from ottla.groups.overview import GroupOverview, overview
from ottla.groups.share import describe as share_describe
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import ShareHeartbeat
from ottla.groups.share.records import SHARE_KEYS
from ottla.groups.share.state_partitions import StatePartitions
from ottla.groups.state import CoordinatorState
from ottla.groups.streams import describe as streams_describe
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatResult
from ottla.groups.streams.records import STREAMS_KEYS
from ottla.machine.record import Record, UnknownRecord
from ottla.machine.result import Deferred, Result
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_offset_commit import OffsetCommitRequest, TopicResult
from ottla.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from ottla.protocol.topics import TopicPartition

D = TypeVar("D")  # The description of a group.
G = TypeVar("G", bound=ModernGroup[Any, Any])

_EXPIRE_OFFSETS_KEY = "offsets/expire"


class GroupMachine:
    """Implements `machine.contract.Machine`."""

    def __init__(self, state: CoordinatorState) -> None:
        self._state = state
        self._rebalance = ClassicRebalance(state)
        self._classic_join = ClassicJoin(state, self._rebalance)
        self._classic_membership = ClassicMembership(state, self._rebalance)
        self._commits = OffsetCommits(state, self._rebalance)
        migration = Migration(state, self._rebalance)
        progress = Progress(state)
        self._sessions = ConsumerSessions(state, migration)
        self._consumer_heartbeat = ConsumerHeartbeat(state, progress, self._sessions, migration)
        self._classic_members = ClassicMembers(state, progress, self._sessions, migration)
        self._share_heartbeat = ShareHeartbeat(state)
        self.share_partitions = StatePartitions(state)
        self._streams_heartbeat = StreamsHeartbeat(state)

    # Machine.

    def replay(self, record: object, timestamp_ms: int) -> None:
        match record:
            case OffsetCommitRecord():
                self._state.offsets.replay(record)
            case Record(key=GroupMetadataKey(group=id), value=GroupMetadataValue() as value):
                self._state.classic_records[id] = value
            case Record(key=GroupMetadataKey(group=id), value=None):
                self._replay_classic_tombstone(id, timestamp_ms)
            case Transactional(producer_id, epoch, OffsetCommitRecord() as commit):
                self._state.offsets.replay_pending(producer_id, epoch, commit)
            case TransactionMarker():
                self._state.offsets.replay_marker(record)
            case Record(key=key) if isinstance(key, CONSUMER_KEYS):
                self._replay_modern(
                    self._state.consumer_groups, ConsumerGroup, key.group_id, record
                )
            case Record(key=key) if isinstance(key, SHARE_KEYS):
                self._replay_modern(self._state.share_groups, ShareGroup, key.group_id, record)
            case Record(key=key) if isinstance(key, STREAMS_KEYS):
                self._replay_modern(self._state.streams_groups, StreamsGroup, key.group_id, record)
            case Record(key=AbsenceKey(group_id=id), value=AbsenceValue() | None as value):
                self._state.absences.replay(id, value)
            case UnknownRecord():
                pass
            case _:
                raise AssertionError(f"not a record of a group: {record}")

    def _replay_classic_tombstone(self, group_id: str, timestamp_ms: int) -> None:
        self._state.classic_records.pop(group_id, None)
        group = self._state.classic_groups.pop(group_id, None)
        if group is not None:
            group.transition_to(ClassicState.DEAD, timestamp_ms)

    def _replay_modern(
        self, groups: dict[str, G], create: Callable[[str], G], group_id: str, record: Record
    ) -> None:
        """Tombstones of unknown groups are left by compaction and change nothing."""
        group = groups.get(group_id)
        if group is None:
            if record.value is None:
                return
            group = groups.setdefault(group_id, create(group_id))
        group.replay(record)
        if isinstance(record.key, group.FAMILIES.epoch) and record.value is None:
            del groups[group_id]
            self._state.topics_seen.pop(group_id, None)
            self._state.expressions_seen_ms.pop(group_id, None)
            self._streams_heartbeat.forget(group_id)

    def snapshot(self) -> Iterable[object]:
        yield from self._state.offsets.snapshot()
        for groups in self._state.modern_groups:
            for group in groups.values():
                yield from group.snapshot()
        for group_id, value in self._state.classic_records.items():
            yield group_metadata(group_id, value)
        yield from self._state.absences.snapshot()

    def on_loaded(self, now_ms: int) -> None:
        """Give every member a new session, and start the expiry of offsets."""
        for group_id in tuple(self._state.classic_records):
            group = self._state.classic_group(group_id)
            assert group is not None
            self._rebalance.on_loaded(group, now_ms)
        for consumer_group in self._state.consumer_groups.values():
            self._sessions.on_loaded(consumer_group, now_ms)
        for share_group in self._state.share_groups.values():
            self._share_heartbeat.sessions.on_loaded(share_group, now_ms)
        for streams_group in self._state.streams_groups.values():
            self._streams_heartbeat.sessions.on_loaded(streams_group, now_ms)
        self._state.absences.on_loaded(now_ms)
        self._schedule_expiry(now_ms + self._state.config.offsets_retention_check_interval_ms)

    def _schedule_expiry(self, deadline_ms: int) -> None:
        self._state.timers.schedule(_EXPIRE_OFFSETS_KEY, deadline_ms, self._expire_offsets)

    def _expire_offsets(self, now_ms: int) -> Result[None]:
        result, has_more = removal.expire_offsets(self._state, now_ms)
        interval_ms = self._state.config.offsets_retention_check_interval_ms
        self._schedule_expiry(now_ms if has_more else now_ms + interval_ms)
        return result

    # Classic protocol.

    def join_group(
        self, request: JoinGroupRequest, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        self._classic_join.validate(request)
        self._validate_not_shared(request.group_id, ErrorCode.inconsistent_group_protocol)
        group = self._state.consumer_groups.get(request.group_id)
        if group is not None and not group.is_empty:
            return self._classic_members.join_group(group, request, caller, now_ms)
        result = self._classic_join.join_group(request, caller, now_ms)
        writes_or_joins = result.records or isinstance(result.response, Deferred)
        if group is None or not writes_or_joins:
            return result
        # The consumer group is empty and is replaced by the classic one.
        return result._replace(records=(*group.tombstones(), *result.records))

    def sync_group(self, request: SyncGroupRequest, now_ms: int) -> Result[SyncGroupResponse]:
        group = self._state.consumer_groups.get(request.group_id)
        if group is not None:
            return self._classic_members.sync_group(group, request, now_ms)
        return self._classic_membership.sync_group(request, now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Result[HeartbeatResponse]:
        group = self._state.consumer_groups.get(request.group_id)
        if group is not None:
            return self._classic_members.heartbeat(group, request, now_ms)
        return self._classic_membership.heartbeat(request, now_ms)

    def leave_group(self, request: LeaveGroupRequest, now_ms: int) -> Result[LeaveGroupResponse]:
        group = self._state.consumer_groups.get(request.group_id)
        if group is not None:
            return self._classic_members.leave_group(group, request, now_ms)
        return self._classic_membership.leave_group(request, now_ms)

    # Consumer protocol.

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[ConsumerGroupHeartbeatResponse]:
        self._validate_not_shared(request.group_id, ErrorCode.group_id_not_found)
        return self._consumer_heartbeat.heartbeat(request, caller, now_ms)

    def describe_consumer_groups(
        self, group_ids: Iterable[str]
    ) -> Result[tuple[DescribedConsumerGroup, ...]]:
        default_assignor = self._state.config.consumer_assignors[0]
        return self._described(
            group_ids,
            self._state.consumer_groups,
            "consumer",
            lambda group: consumer_describe.describe(group, self._state.catalog, default_assignor),
            consumer_describe.describe_missing,
        )

    # Share groups.

    def _validate_not_shared(self, group_id: str, code: ErrorCode) -> None:
        if group_id in self._state.share_groups:
            raise ApiError(code, f"{group_id} is a share group")
        if group_id in self._state.streams_groups:
            raise ApiError(code, f"{group_id} is a streams group")

    def share_group_heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[ShareGroupHeartbeatResponse]:
        return self._share_heartbeat.heartbeat(request, caller, now_ms)

    def describe_share_groups(
        self, group_ids: Iterable[str]
    ) -> Result[tuple[DescribedShareGroup, ...]]:
        return self._described(
            group_ids,
            self._state.share_groups,
            "share",
            lambda group: share_describe.describe(group, self._state.catalog),
            share_describe.describe_missing,
        )

    def has_share_group(self, group_id: str) -> bool:
        return group_id in self._state.share_groups

    # Streams groups.

    def streams_group_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Result[StreamsHeartbeatResult]:
        return self._streams_heartbeat.heartbeat(request, caller, now_ms)

    def describe_streams_groups(
        self, group_ids: Iterable[str]
    ) -> Result[tuple[DescribedStreamsGroup, ...]]:
        return self._described(
            group_ids,
            self._state.streams_groups,
            "streams",
            streams_describe.describe,
            streams_describe.describe_missing,
        )

    # Offsets.

    def commit_offsets(
        self, request: OffsetCommitRequest, api_version: int, now_ms: int
    ) -> Result[list[TopicResult]]:
        return self._commits.commit_offsets(request, api_version, now_ms)

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, api_version: int, now_ms: int
    ) -> Result[TxnOffsetCommitResponse]:
        return self._commits.commit_transactional_offsets(request, api_version, now_ms)

    def complete_transaction(self, marker: TransactionMarker) -> Result[None]:
        return Result(None, (marker,))

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> Result[OffsetFetchResponseGroup]:
        return fetch_offsets(self._state, request, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> Result[OffsetDeleteResponse]:
        return removal.delete_offsets(self._state, request)

    def remove_topics(self, topics: Collection[str], now_ms: int) -> Result[None]:
        """Topics were deleted. What does not fit into one batch follows by a timer."""
        result, has_more = removal.remove_topics(self._state, topics)
        if has_more:
            again = partial(self.remove_topics, frozenset(topics))
            key = f"offsets/remove/{','.join(sorted(topics))}"
            self._state.timers.schedule(key, now_ms, again)
        return result

    # Whole groups.

    def _described(
        self,
        group_ids: Iterable[str],
        groups: Mapping[str, G],
        kind: str,
        describe: Callable[[G], D],
        describe_missing: Callable[[str, ApiError], D],
    ) -> Result[tuple[D, ...]]:
        return Result(
            tuple(
                describe(group)
                if (group := groups.get(group_id)) is not None
                else describe_missing(group_id, self._missing(group_id, kind))
                for group_id in group_ids
            )
        )

    def _missing(self, group_id: str, kind: str) -> ApiError:
        """Why there is no group of this type."""
        if not group_id:
            return ApiError(ErrorCode.invalid_group_id, "the group id is empty")
        other = self._state.group(group_id)
        problem = "not found" if other is None else f"is not a {kind} group"
        return ApiError(ErrorCode.group_id_not_found, f"Group {group_id} {problem}.")

    def overview(self) -> Iterator[GroupOverview]:
        return overview(self._state)

    def groups_with_offsets(self) -> tuple[str, ...]:
        return tuple(self._state.offsets.group_ids())

    def committed_offsets(self, group_id: str) -> Mapping[TopicPartition, Committed]:
        """For inspection."""
        return self._state.offsets.of_group(group_id)

    def delete_groups(self, group_ids: Iterable[str]) -> Result[tuple[DeletableGroupResult, ...]]:
        return removal.delete_groups(self._state, group_ids)

    def describe_groups(
        self, group_ids: Iterable[str], caller: Caller
    ) -> Result[tuple[DescribedGroup, ...]]:
        return Result(tuple(self._describe(group_id, caller) for group_id in group_ids))

    def _describe(self, group_id: str, caller: Caller) -> DescribedGroup:
        is_other = group_id in self._state.consumer_groups or group_id in self._state.streams_groups
        group = None if is_other else self._state.classic_group(group_id)
        if group is None:
            problem = "is not a classic group" if is_other else "not found"
            message = f"Group {group_id} {problem}."
            return describe_missing(group_id, caller.api_version, message)
        return describe(group)

    def list_groups(self, request: ListGroupsRequest) -> Result[tuple[ListedGroup, ...]]:
        """Filters ignore case; an empty filter accepts everything."""
        states = {name.strip().lower() for name in request.states_filter}
        types = {name.strip().lower() for name in request.types_filter}
        listed = []
        for group_id in self._state.group_ids():
            group = self._state.group(group_id)
            assert group is not None, "every id in the state is that of a group"
            if states and group.state_name.lower() not in states:
                continue
            if types and group.type_name.lower() not in types:
                continue
            listed.append(
                ListedGroup(
                    group_id=GroupId(group_id),
                    protocol_type=group.protocol_type_name,
                    group_state=group.state_name,
                    group_type=group.type_name,
                )
            )
        return Result(tuple(listed))
