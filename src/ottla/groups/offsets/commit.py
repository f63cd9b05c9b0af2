"""OffsetCommit and TxnOffsetCommit.

A topic is named by name, or by id since version 10 of OffsetCommit. Offsets are stored under the
name, with the id that the topic has now, so that an offset does not outlive the topic.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
)
from kio.schema.txn_offset_commit.v5.response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

from ottla.groups.caller import Caller
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import ClassicRebalance
from ottla.groups.classic.state import ClassicState
from ottla.groups.duration import NO_THROTTLE, in_ms
from ottla.groups.group import Group
from ottla.groups.offsets.records import OffsetCommitRecord, OffsetCommitValue
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from ottla.protocol.topics import TopicPartition

_GROUP_NOT_FOUND_SINCE = 9


class _Moment(NamedTuple):
    now_ms: int
    expire_ms: int = -1  # Only clients before 2.1 say when an offset expires.


CommittedPartition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


class OffsetCommits:
    def __init__(self, state: CoordinatorState, rebalance: ClassicRebalance) -> None:
        self._state = state
        self._rebalance = rebalance

    def commit_offsets(
        self, request: OffsetCommitRequest, caller: Caller, now_ms: int
    ) -> Result[OffsetCommitResponse]:
        generation = request.generation_id_or_member_epoch
        group = self._group(request.group_id)
        if group is not None:
            group.validate_offset_commit(
                request.member_id,
                request.group_instance_id,
                generation,
                transactional=False,
                api_version=caller.api_version,
            )
            self._keep_alive(group, request.member_id, now_ms)
        elif generation >= 0:
            has_error = caller.api_version >= _GROUP_NOT_FOUND_SINCE
            raise ApiError(
                ErrorCode.group_id_not_found if has_error else ErrorCode.illegal_generation
            )
        retention_ms = in_ms(request.retention_time)
        moment = _Moment(now_ms, -1 if retention_ms < 0 else now_ms + retention_ms)
        records: list[OffsetCommitRecord] = []
        topics = tuple(
            self._commit_topic(request.group_id, topic, moment, records) for topic in request.topics
        )
        return Result(
            OffsetCommitResponse(throttle_time=NO_THROTTLE, topics=topics), tuple(records)
        )

    def _commit_topic(
        self,
        group_id: str,
        topic: OffsetCommitRequestTopic,
        moment: _Moment,
        records: list[OffsetCommitRecord],
    ) -> OffsetCommitResponseTopic:
        name = topic.name
        if not name and topic.topic_id is not None:
            name = self._state.catalog.topic_name(topic.topic_id) or ""
        if name:
            errors = self._commit(group_id, name, topic.partitions, moment, records)
        else:
            errors = [ErrorCode.unknown_topic_id] * len(topic.partitions)
        partitions = tuple(
            OffsetCommitResponsePartition(partition_index=item.partition_index, error_code=code)
            for item, code in zip(topic.partitions, errors, strict=True)
        )
        return OffsetCommitResponseTopic(name=name, topic_id=topic.topic_id, partitions=partitions)

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, caller: Caller, now_ms: int
    ) -> Result[TxnOffsetCommitResponse]:
        self._validate_transactional(request, caller)
        records: list[OffsetCommitRecord] = []
        topics = []
        for topic in request.topics:
            errors = self._commit(
                request.group_id, topic.name, topic.partitions, _Moment(now_ms), records
            )
            partitions = tuple(
                TxnOffsetCommitResponsePartition(
                    partition_index=item.partition_index, error_code=code
                )
                for item, code in zip(topic.partitions, errors, strict=True)
            )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        return Result(
            TxnOffsetCommitResponse(throttle_time=NO_THROTTLE, topics=tuple(topics)),
            tuple(
                Transactional(request.producer_id, request.producer_epoch, record)
                for record in records
            ),
        )

    def _validate_transactional(self, request: TxnOffsetCommitRequest, caller: Caller) -> None:
        group = self._group(request.group_id)
        if group is not None:
            try:
                group.validate_offset_commit(
                    request.member_id,
                    request.group_instance_id,
                    request.generation_id,
                    transactional=True,
                    api_version=caller.api_version,
                )
            except ApiError as error:
                if error.code is ErrorCode.stale_member_epoch:
                    raise ApiError(ErrorCode.illegal_generation, error.message) from None
                raise
        elif request.generation_id >= 0:
            raise ApiError(ErrorCode.illegal_generation)
        epoch = self._state.offsets.producer_epoch(request.producer_id)
        if epoch is not None and request.producer_epoch < epoch:
            raise ApiError(
                ErrorCode.invalid_producer_epoch, f"the producer's epoch is {epoch} by now"
            )

    def complete_transaction(self, marker: TransactionMarker) -> Result[None]:
        return Result(None, (marker,))

    def _group(self, group_id: str) -> Group | None:
        if not group_id:
            raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")
        return self._state.group(group_id)

    def _keep_alive(self, group: Group, member_id: str, now_ms: int) -> None:
        """A member of a classic group that commits is alive."""
        if isinstance(group, ClassicGroup) and group.state in {
            ClassicState.STABLE,
            ClassicState.PREPARING_REBALANCE,
        }:
            self._rebalance.keep_alive(group, group.members[member_id], now_ms)

    def _commit(
        self,
        group_id: str,
        topic: str,
        partitions: Iterable[CommittedPartition],
        moment: _Moment,
        records: list[OffsetCommitRecord],
    ) -> list[ErrorCode]:
        """Adds a record for each partition that can be committed; an error code for each."""
        count = self._state.catalog.partition_count(topic) or 0
        topic_id = self._state.catalog.topic_id(topic)
        errors = []
        for partition in partitions:
            error = self._error_of(partition, count)
            errors.append(error)
            if error is ErrorCode.none:
                value = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata or "",
                    commit_timestamp=moment.now_ms,
                    expire_timestamp=moment.expire_ms,
                    topic_id=topic_id,
                )
                place = TopicPartition(topic, partition.partition_index)
                records.append(OffsetCommitRecord(group_id, place, value))
        return errors

    def _error_of(self, partition: CommittedPartition, partition_count: int) -> ErrorCode:
        if not 0 <= partition.partition_index < partition_count:
            return ErrorCode.unknown_topic_or_partition
        metadata = partition.committed_metadata or ""
        # Kafka counts characters here, whatever the name of the key says.
        if len(metadata) > self._state.config.offset_metadata_max_bytes:
            return ErrorCode.offset_metadata_too_large
        return ErrorCode.none
