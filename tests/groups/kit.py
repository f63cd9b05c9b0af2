"""Drives a GroupMachine like the runtime, with manual time.

Every record is encoded and decoded, as if it came from a log.
"""

import itertools
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kio.schema.consumer_group_heartbeat.v1.response import ConsumerGroupHeartbeatResponse
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta
from tests.kits.manual_timers import ManualTimers

from ottla.groups.caller import Caller
from ottla.groups.config import GroupConfig
from ottla.groups.consumer.config import ConsumerConfig
from ottla.groups.coordinator import GroupMachine
from ottla.groups.record_codec import GroupRecordCodec
from ottla.groups.state import CoordinatorState
from ottla.groups.streams.config import StreamsConfig
from ottla.machine.record import Record
from ottla.machine.result import Deferred, Result
from ottla.machine.transactional import Transactional
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    TopicResult,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)

R = TypeVar("R")

START_MS = 1_000_000
ALL_GROUPS = ListGroupsRequest()
CALLER = Caller(api_version=9, client_id="client", client_host="/host")

_codec = GroupRecordCodec()


def duration(milliseconds: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=milliseconds))


class Catalog:
    """Topics with their partition counts; ids are numbered by creation."""

    def __init__(self, **topics: int) -> None:
        self._ids = itertools.count(1)
        self.topics: dict[str, tuple[UUID, int]] = {}
        self.topics_version = 0
        for name, count in topics.items():
            self.create(name, count)

    def create(self, name: str, partition_count: int) -> UUID:
        topic_id = UUID(int=next(self._ids))
        self.topics_version += 1
        self.topics[name] = (topic_id, partition_count)
        return topic_id

    def topic_names(self) -> Iterable[str]:
        return tuple(self.topics)

    def topic_id(self, name: str) -> UUID | None:
        return self.topics[name][0] if name in self.topics else None

    def topic_name(self, topic_id: UUID) -> str | None:
        return next((name for name, topic in self.topics.items() if topic[0] == topic_id), None)

    def partition_count(self, name: str) -> int | None:
        return self.topics[name][1] if name in self.topics else None


class Reply:
    """The response to a request, which may still be parked."""

    def __init__(self, response: Any) -> None:
        self._outcome: Any = None
        if isinstance(response, Deferred):
            response.when_settled(self._settle)
        else:
            self._outcome = response

    def _settle(self, outcome: Any) -> None:
        self._outcome = outcome

    @property
    def waits(self) -> bool:
        return self._outcome is None

    @property
    def value(self) -> Any:
        assert self._outcome is not None, "the reply is still parked"
        return self._outcome


class Coordinator:
    def __init__(
        self,
        catalog: Catalog | None = None,
        consumer: ConsumerConfig | None = None,
        streams: StreamsConfig | None = None,
        **config: Any,
    ) -> None:
        """`consumer` holds for every consumer group, `streams` for every streams group."""
        self.catalog = catalog or Catalog(t=4, u=2)
        self.consumer_config = consumer or ConsumerConfig()
        self.streams_config = streams or StreamsConfig()
        self.config = GroupConfig(**config)
        self.now_ms = START_MS
        self.log: list[object] = []
        self.last_records: tuple[object, ...] = ()  # From the last operation or expiry.
        self._uuids = itertools.count(1)
        self._load()

    def _load(self) -> None:
        self.timers = ManualTimers()
        state = CoordinatorState(
            config=self.config,
            catalog=self.catalog,
            timers=self.timers,
            new_uuid=lambda: str(next(self._uuids)),
            consumer_config=lambda _: self.consumer_config,
            streams_config=lambda _: self.streams_config,
        )
        self.machine = GroupMachine(state)
        for record in self.log:
            self.machine.replay(record, self.now_ms)
        self.machine.on_loaded(self.now_ms)

    def reload(self) -> None:
        """Another coordinator takes over, with nothing but the log."""
        self._load()

    def run(self, operation: Callable[[int], Result[R]]) -> Reply:
        self.last_records = ()
        result = operation(self.now_ms)
        reply = Reply(result.response)
        self.last_records = result.records
        for record in result.records:
            written = _through_bytes(record)
            self.log.append(written)
            self.machine.replay(written, self.now_ms)
        for completion in result.completions:
            completion.deferred.settle(completion.outcome)
        return reply

    def refusal(self, operation: Callable[[], object]) -> ErrorCode:
        """The error code that refuses the whole operation."""
        try:
            operation()
        except ApiError as error:
            return error.code
        raise AssertionError("the operation was not refused")

    def advance(self, milliseconds: int) -> list[object]:
        """Let time pass and timers expire, each at its deadline; returns all their records."""
        until_ms = self.now_ms + milliseconds
        records: list[object] = []
        while (due := self.timers.pop_due(until_ms)) is not None:
            deadline_ms, expiry = due
            self.now_ms = max(self.now_ms, deadline_ms)
            self.run(expiry)
            records.extend(self.last_records)
        self.now_ms = until_ms
        return records

    # Requests, with irrelevant fields filled in.

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        instance: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        version: int = 9,
        client: str = "client",
    ) -> Reply:
        request = JoinGroupRequest(
            group_id=GroupId(group),
            session_timeout=duration(session_ms),
            rebalance_timeout=duration(rebalance_ms),
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in (protocols or {"range": subscription("t")}).items()
            ),
        )
        caller = Caller(api_version=version, client_id=client, client_host="/host")
        return self.run(lambda now_ms: self.machine.join_group(request, caller, now_ms))

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> Reply:
        request = SyncGroupRequest(
            group_id=GroupId(group),
            generation_id=i32(generation),
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=assigned, assignment=assignment)
                for assigned, assignment in (assignments or {}).items()
            ),
        )
        return self.run(lambda now_ms: self.machine.sync_group(request, now_ms))

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> HeartbeatResponse:
        request = HeartbeatRequest(
            group_id=GroupId(group),
            generation_id=i32(generation),
            member_id=member_id,
            group_instance_id=instance,
        )
        response = self.run(lambda now_ms: self.machine.heartbeat(request, now_ms)).value
        assert isinstance(response, HeartbeatResponse)
        return response

    def leave(self, *members: tuple[str, str | None], group: str = "g") -> LeaveGroupResponse:
        request = LeaveGroupRequest(
            group_id=GroupId(group),
            members=tuple(
                MemberIdentity(member_id=member_id, group_instance_id=instance)
                for member_id, instance in members
            ),
        )
        reply = self.run(lambda now_ms: self.machine.leave_group(request, now_ms))
        assert isinstance(reply.value, LeaveGroupResponse)
        return reply.value

    def beat(
        self,
        member_id: str = "",
        epoch: int = 0,
        *,
        group: str = "g",
        topics: tuple[str, ...] | None = None,
        regex: str | None = None,
        owned: Iterable[tuple[str, int]] | None = None,
        instance: str | None = None,
        rebalance_ms: int | None = None,
        assignor: str | None = None,
        version: int = 1,
        may_describe: Callable[[str], bool] = lambda _: True,
    ) -> ConsumerGroupHeartbeatResponse:
        """ConsumerGroupHeartbeat; a joining member (epoch 0) subscribes to `t` by default."""
        joins = epoch == 0
        if joins and topics is None and regex is None:
            topics = ("t",)
        if rebalance_ms is None:
            rebalance_ms = 60_000 if joins else -1
        request = ConsumerGroupHeartbeatRequest(
            group_id=GroupId(group),
            member_id=member_id,
            member_epoch=i32(epoch),
            instance_id=instance,
            rebalance_timeout=duration(rebalance_ms),
            subscribed_topic_names=None if topics is None else tuple(map(TopicName, topics)),
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=() if joins and owned is None else self._owned(owned),
        )
        caller = Caller(version, "client", "/host", may_describe)
        reply = self.run(
            lambda now_ms: self.machine.consumer_group_heartbeat(request, caller, now_ms)
        )
        assert isinstance(reply.value, ConsumerGroupHeartbeatResponse)
        return reply.value

    def _owned(self, owned: Iterable[tuple[str, int]] | None) -> tuple[TopicPartitions, ...] | None:
        if owned is None:
            return None
        topics: dict[str, list[i32]] = {}
        for name, partition in sorted(owned):
            topics.setdefault(name, []).append(i32(partition))
        return tuple(
            TopicPartitions(topic_id=self.catalog.topic_id(name), partitions=tuple(partitions))
            for name, partitions in topics.items()
        )

    def assigned(self, response: ConsumerGroupHeartbeatResponse) -> set[tuple[str, int]] | None:
        """The assignment of a response by topic names, None when it has none."""
        if response.assignment is None:
            return None
        return {
            (self.catalog.topic_name(topic.topic_id) or "?", partition)
            for topic in response.assignment.topic_partitions
            if topic.topic_id is not None
            for partition in topic.partitions
        }

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        *,
        group: str = "g",
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str | None = "",
        version: int = 9,
        topic_ids: bool = False,
        retention_ms: int = -1,
    ) -> list[TopicResult]:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_ms=retention_ms,
            topics=[
                CommittedTopic(
                    topic="" if topic_ids else topic,
                    topic_id=self.catalog.topic_id(topic) if topic_ids else None,
                    partitions=[CommittedPartition(partition, offset, 7, metadata)],
                )
                for (topic, partition), offset in offsets.items()
            ],
        )
        reply = self.run(lambda now_ms: self.machine.commit_offsets(request, version, now_ms))
        assert isinstance(reply.value, list)
        return reply.value

    def fetch(
        self,
        *partitions: tuple[str, int],
        group: str = "g",
        everything: bool = False,
        require_stable: bool = False,
        member_id: str | None = None,
        member_epoch: int = -1,
        topic_ids: bool = False,
    ) -> OffsetFetchResponseGroup:
        topics: dict[str, list[i32]] = {}
        for topic, partition in partitions:
            topics.setdefault(topic, []).append(i32(partition))
        request = OffsetFetchRequestGroup(
            group_id=GroupId(group),
            member_id=member_id,
            member_epoch=i32(member_epoch),
            topics=None
            if everything
            else tuple(
                OffsetFetchRequestTopics(
                    name="" if topic_ids else topic,
                    topic_id=self.catalog.topic_id(topic) if topic_ids else None,
                    partition_indexes=tuple(indexes),
                )
                for topic, indexes in topics.items()
            ),
        )
        reply = self.run(
            lambda _: self.machine.fetch_offsets(request, require_stable=require_stable)
        )
        assert isinstance(reply.value, OffsetFetchResponseGroup)
        return reply.value

    def offsets(self, *partitions: tuple[str, int], group: str = "g") -> dict[Any, int]:
        """The committed offsets as a client sees them; all of the group's by default."""
        fetched = self.fetch(*partitions, group=group, everything=not partitions)
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in fetched.topics
            for partition in topic.partitions
        }

    # Groups that are ready.

    def stable_group(self, count: int = 2, *, group: str = "g", **join: Any) -> list[str]:
        """A group in its first generation, each member's assignment being its id."""
        replies = []
        for _ in range(count):
            member_id = self.join(group=group, **join).value.member_id
            replies.append(self.join(member_id, group=group, **join))
        self.advance(self.config.initial_rebalance_delay_ms)
        joined: list[JoinGroupResponse] = [reply.value for reply in replies]
        return self.sync_all(joined, group=group)

    def sync_all(self, joined: list[JoinGroupResponse], *, group: str = "g") -> list[str]:
        member_ids = [response.member_id for response in joined]
        leader, generation = joined[0].leader, joined[0].generation_id
        everything = {member_id: member_id.encode() for member_id in member_ids}
        synced: list[SyncGroupResponse] = []
        for member_id in sorted(member_ids, key=leader.__eq__):
            leads = member_id == leader
            self.sync(member_id, generation, everything if leads else {}, group=group)
        for member_id in member_ids:
            reply = self.sync(member_id, generation, group=group)
            synced.append(reply.value)
            assert reply.value.assignment == member_id.encode()
        return member_ids


def _through_bytes(record: object) -> object:
    if isinstance(record, Transactional):
        return Transactional(
            record.producer_id, record.producer_epoch, _through_bytes(record.record)
        )
    if isinstance(record, Record):
        return _codec.decode(*_codec.encode(record))
    return record


def subscription(*topics: str) -> bytes:
    """The metadata of a consumer that subscribes to these topics, version 0."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\x00\x00" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"
