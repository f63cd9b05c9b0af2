"""Requests and expectations for the tests of offsets."""

from uuid import UUID

from kio.schema.offset_delete.v0.request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequestPartition
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16, i32, i64
from tests.groups.kit import START_MS, Coordinator, Reply

from ottla.groups.offsets.records import OffsetCommitValue
from ottla.machine.transactional import TransactionMarker
from ottla.protocol.errors import ErrorCode
from ottla.protocol.hot_offset_commit import TopicResult
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
)


def value(offset: int, *, topic_id: int = 1, at_ms: int = START_MS) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=7,
        metadata="",
        commit_timestamp=at_ms,
        topic_id=UUID(int=topic_id),
    )


def error_of(response: list[TopicResult]) -> ErrorCode:
    return response[0].partitions[0][1]


def transactional_commit(
    coordinator: Coordinator,
    partition: int,
    offset: int,
    *,
    producer_id: int = 5,
    epoch: int = 1,
    generation: int = -1,
    member_id: str = "",
    api_version: int = 5,
) -> Reply:
    request = TxnOffsetCommitRequest(
        transactional_id=TransactionalId("x"),
        group_id=GroupId("g"),
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(epoch),
        generation_id=i32(generation),
        member_id=member_id,
        topics=(
            TxnOffsetCommitRequestTopic(
                name=TopicName("t"),
                partitions=(
                    TxnOffsetCommitRequestPartition(
                        partition_index=i32(partition),
                        committed_offset=i64(offset),
                        committed_leader_epoch=i32(7),
                        committed_metadata=None,
                    ),
                ),
            ),
        ),
    )
    return coordinator.run(
        lambda now_ms: coordinator.machine.commit_transactional_offsets(
            request, api_version, now_ms
        )
    )


def end_transaction(coordinator: Coordinator, *, committed: bool, producer_id: int = 5) -> None:
    marker = TransactionMarker(producer_id, 1, 0, committed)
    coordinator.run(lambda _: coordinator.machine.complete_transaction(marker))


def delete_offsets(coordinator: Coordinator, topic: str, partition: int) -> Reply:
    request = OffsetDeleteRequest(
        group_id=GroupId("g"),
        topics=(
            OffsetDeleteRequestTopic(
                name=TopicName(topic),
                partitions=(OffsetDeleteRequestPartition(partition_index=i32(partition)),),
            ),
        ),
    )
    return coordinator.run(lambda _: coordinator.machine.delete_offsets(request))
