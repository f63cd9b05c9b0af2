"""OffsetCommit and TxnOffsetCommit.

A topic is identified by name, or by id from version 10 of OffsetCommit and 6 of TxnOffsetCommit on.
Offsets are stored under the name, with the current topic id, so that an offset does not outlive the
topic.
"""

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponsePartition
from kio.static.primitive import i32

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import ClassicRebalance
from ottla.groups.classic.state import ClassicState
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.group import Group
from ottla.groups.offsets.records import OffsetCommitRecord, OffsetCommitValue
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.state import CoordinatorState
from ottla.groups.streams.group import StreamsGroup
from ottla.machine.catalog import TopicCatalog
from ottla.machine.result import Result
from ottla.machine.transactional import Transactional
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    TopicResult,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition

_GROUP_NOT_FOUND_SINCE = 9
_SAME_ERRORS_SINCE = 6  # Of TxnOffsetCommit: a group or an epoch is refused as in OffsetCommit.
_NEVER = -1


class _Commit(NamedTuple):
    """Common to all offsets of a request."""

    group_id: str
    now_ms: int
    expire_ms: int = _NEVER  # Only clients before 2.1 set an expiry.


class OffsetCommits:
    def __init__(self, state: CoordinatorState, rebalance: ClassicRebalance) -> None:
        self._state = state
        self._rebalance = rebalance

    def commit_offsets(
        self, request: OffsetCommitRequest, api_version: int, now_ms: int
    ) -> Result[list[TopicResult]]:
        group_id, generation, member_id, group_instance_id, retention_ms, topics = request
        group = self._state.group(group_id)
        if group is not None:
            try:
                group.validate_offset_commit(
                    member_id,
                    group_instance_id,
                    generation,
                    transactional=False,
                    api_version=api_version,
                )
            except ApiError as error:
                topic_partitions = (
                    (topic_id or self._state.catalog.topic_id(topic), item.partition)
                    for topic, topic_id, partitions in topics
                    for item in partitions
                )
                if not _is_still_good(
                    error, group, member_id, generation, topic_partitions, self._state.catalog
                ):
                    raise
            self._keep_alive(group, member_id, now_ms)
        elif generation >= 0:
            has_error = api_version >= _GROUP_NOT_FOUND_SINCE
            raise ApiError(
                ErrorCode.group_id_not_found if has_error else ErrorCode.illegal_generation
            )
        expire_ms = _NEVER if retention_ms < 0 else now_ms + retention_ms
        commit = _Commit(group_id, now_ms, expire_ms)
        records: list[OffsetCommitRecord] = []
        results = [self._commit_topic(commit, topic, records) for topic in topics]
        return Result(results, tuple(records))

    def _commit_topic(
        self, commit: _Commit, topic: CommittedTopic, records: list[OffsetCommitRecord]
    ) -> TopicResult:
        name, topic_id, partitions = topic
        if not name and topic_id is not None:
            name = self._state.catalog.topic_name(topic_id) or ""
        if name:
            return TopicResult(name, topic_id, self._commit(commit, name, partitions, records))
        code = ErrorCode.unknown_topic_id
        return TopicResult(name, topic_id, [(item.partition, code) for item in partitions])

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, api_version: int, now_ms: int
    ) -> Result[TxnOffsetCommitResponse]:
        self._validate_transactional(request, api_version)
        commit = _Commit(request.group_id, now_ms)
        records: list[OffsetCommitRecord] = []
        topics = []
        for topic in request.topics:
            partitions = (
                CommittedPartition(
                    item.partition_index,
                    item.committed_offset,
                    item.committed_leader_epoch,
                    item.committed_metadata,
                )
                for item in topic.partitions
            )
            results = tuple(
                TxnOffsetCommitResponsePartition(partition_index=i32(partition), error_code=code)
                for partition, code in self._commit(commit, topic.name, partitions, records)
            )
            topics.append(
                TxnOffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=results
                )
            )
        return Result(
            TxnOffsetCommitResponse(throttle_time=NO_THROTTLE, topics=tuple(topics)),
            tuple(
                Transactional(request.producer_id, request.producer_epoch, record)
                for record in records
            ),
        )

    def _validate_transactional(self, request: TxnOffsetCommitRequest, api_version: int) -> None:
        group = self._state.group(request.group_id)
        if group is not None:
            try:
                group.validate_offset_commit(
                    request.member_id,
                    request.group_instance_id,
                    request.generation_id,
                    transactional=True,
                    api_version=api_version,
                )
            except ApiError as error:
                topic_partitions = (
                    (self._state.catalog.topic_id(topic.name), item.partition_index)
                    for topic in request.topics
                    for item in topic.partitions
                )
                member_id, generation = request.member_id, request.generation_id
                if not _is_still_good(
                    error, group, member_id, generation, topic_partitions, self._state.catalog
                ):
                    old = api_version < _SAME_ERRORS_SINCE
                    if old and error.code is ErrorCode.stale_member_epoch:
                        raise ApiError(ErrorCode.illegal_generation, error.message) from None
                    raise
        elif request.generation_id >= 0:
            has_error = api_version >= _SAME_ERRORS_SINCE
            raise ApiError(
                ErrorCode.group_id_not_found if has_error else ErrorCode.illegal_generation
            )
        epoch = self._state.offsets.producer_epoch(request.producer_id)
        if epoch is not None and request.producer_epoch < epoch:
            raise ApiError(
                ErrorCode.invalid_producer_epoch, f"the producer's epoch is {epoch} by now"
            )

    def _keep_alive(self, group: Group, member_id: str, now_ms: int) -> None:
        """A member of a classic group that commits is alive."""
        if isinstance(group, ClassicGroup) and group.state in {
            ClassicState.STABLE,
            ClassicState.PREPARING_REBALANCE,
        }:
            self._rebalance.keep_alive(group, group.members[member_id], now_ms)

    def _commit(
        self,
        commit: _Commit,
        topic: str,
        partitions: Iterable[CommittedPartition],
        records: list[OffsetCommitRecord],
    ) -> list[tuple[int, ErrorCode]]:
        """Adds a record for each partition that can be committed; returns the codes of all."""
        group_id, now_ms, expire_ms = commit
        catalog = self._state.catalog
        partition_count = catalog.partition_count(topic) or 0
        topic_id = catalog.topic_id(topic)
        # Kafka counts characters here, whatever the key is called.
        metadata_length_max = self._state.config.offset_metadata_max_bytes
        results = []
        for partition, offset, leader_epoch, metadata in partitions:
            metadata = metadata or ""
            code = ErrorCode.none
            if not 0 <= partition < partition_count:
                code = ErrorCode.unknown_topic_or_partition
            elif len(metadata) > metadata_length_max:
                code = ErrorCode.offset_metadata_too_large
            else:
                topic_partition = TopicPartition(topic, partition)
                value = OffsetCommitValue(
                    offset, metadata, now_ms, leader_epoch, expire_ms, topic_id
                )
                records.append(OffsetCommitRecord(group_id, topic_partition, value))
            results.append((partition, code))
        return results


def _is_still_good(
    error: ApiError,
    group: Group,
    member_id: str,
    epoch: int,
    topic_partitions: Iterable[tuple[UUID | None, int]],
    catalog: TopicCatalog,
) -> bool:
    """A commit overtaken by its member's next epoch still counts for partitions it kept."""
    if error.code is not ErrorCode.stale_member_epoch:
        return False
    existing = [
        TopicIdPartition(topic_id, index) for topic_id, index in topic_partitions if topic_id
    ]
    if isinstance(group, StreamsGroup):
        streams_member = group.members[member_id]
        named = ((catalog.topic_name(topic_id), index) for topic_id, index in existing)
        tasks = [group.tasks_reading(name, index) for name, index in named if name is not None]
        return epoch < streams_member.epoch and all(
            any(streams_member.has_had_since(epoch, (task,)) for task in readers)
            for readers in tasks
        )
    if not isinstance(group, ConsumerGroup):
        return False
    member = group.members[member_id]
    return epoch < member.epoch and member.has_had_since(epoch, existing)
