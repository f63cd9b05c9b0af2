"""TxnOffsetCommit (28): v0-v6.

Commits a group's offsets as part of a producer's transaction: they count once that commits.

v2  the leader epoch of the last record that was read (KIP-320)
v3  flexible; the member is fenced like one that commits by itself (KIP-447)
v4  TRANSACTION_ABORTABLE for a partition that is not in the transaction (KIP-890)
v5  the partition of the offsets is added to the transaction here, without AddOffsetsToTxn
v6  topic ids for names, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319)
"""

from collections.abc import Iterable
from dataclasses import replace

from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponsePartition

from ottla.handlers.authorization import DENIED, require, split_topics
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.transactional_writes import (
    Guards,
    Write,
    add_to_transaction,
    ask_elsewhere,
    is_asked_elsewhere,
    validate_in_transaction,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition
from ottla.security.acls import Operation, ResourceType
from ottla.transactions.transaction import Producer

_ABORTABLE_SINCE = 4
_ADDED_HERE_SINCE = 5
_TOPIC_IDS_SINCE = 6
_UNKNOWN_ID = ApiError(ErrorCode.unknown_topic_id)


async def handle(
    broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    require(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    named = [_with_name(broker, topic) for topic in request.topics]
    has_ids = context.api_version >= _TOPIC_IDS_SINCE
    unknown = [topic for topic in named if has_ids and not topic.name]
    known = [topic for topic in named if not has_ids or topic.name]
    allowed, denied = split_topics(context, Operation.READ, known, lambda topic: topic.name)
    refused = (*_refused_topics(denied, DENIED), *_refused_topics(unknown, _UNKNOWN_ID))
    if not allowed and refused:
        return TxnOffsetCommitResponse(throttle_time=NO_THROTTLE, topics=refused)
    response = await _commit(broker, context, replace(request, topics=tuple(allowed)))
    return replace(response, topics=(*response.topics, *refused))


def _with_name(broker: Broker, topic: TxnOffsetCommitRequestTopic) -> TxnOffsetCommitRequestTopic:
    if topic.topic_id is None:
        return topic
    return replace(topic, name=broker.image.topic_name(topic.topic_id) or "")


async def _commit(
    broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    if not request.group_id:
        raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")
    runtime = broker.groups.find(request.group_id)
    partition = broker.groups.partition_of(request.group_id)
    assert partition is not None, "a coordinator was found, so its topic is there"
    write = Write(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        (TopicPartition(broker.groups.topic, partition),),
    )
    version = context.api_version
    added_here = version >= _ADDED_HERE_SINCE
    abortable = version >= _ABORTABLE_SINCE
    guards: Guards | None = None
    if is_asked_elsewhere(broker, write.transactional_id, added_here=added_here):
        guards = await _ask(broker, write, added_here=added_here, abortable=abortable)
    else:
        if added_here:
            await add_to_transaction(broker, write)
        validate_in_transaction(broker, write, abortable=abortable, added_here=added_here)
    committed = runtime.submit(
        lambda machine, now_ms: machine.commit_transactional_offsets(request, version, now_ms)
    )
    if guards is not None:
        guards.release()  # It is appended.
    try:
        return await committed
    finally:
        del committed  # It may hold an exception whose traceback references this frame.


async def _ask(broker: Broker, write: Write, *, added_here: bool, abortable: bool) -> Guards:
    try:
        led = broker.replicas.find(*write.partitions[0])
        guards = await ask_elsewhere(broker, write, [led], added_here=added_here)
        guards.validate(led, abortable=abortable)
    except ApiError as error:
        if error.code is ErrorCode.transaction_abortable and not abortable:
            raise ApiError(ErrorCode.invalid_txn_state, error.message) from error
        if error.code is ErrorCode.not_leader_or_follower:
            raise ApiError(ErrorCode.not_coordinator, error.message) from error
        raise
    return guards


def error_response(request: TxnOffsetCommitRequest, error: ApiError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time=NO_THROTTLE, topics=_refused_topics(request.topics, error)
    )


def _refused_topics(
    topics: Iterable[TxnOffsetCommitRequestTopic], error: ApiError
) -> tuple[TxnOffsetCommitResponseTopic, ...]:
    return tuple(
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=_code(error)
                )
                for partition in topic.partitions
            ),
        )
        for topic in topics
    )


def _code(error: ApiError) -> ErrorCode:
    """Here a fenced producer was never reported in any other way."""
    fenced = error.code is ErrorCode.producer_fenced
    return ErrorCode.invalid_producer_epoch if fenced else error.code
