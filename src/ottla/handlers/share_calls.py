"""The common part of ShareFetch and ShareAcknowledge: the session, and acknowledging."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.delivery import Acknowledgement, AcknowledgeType
from ottla.groups.share.sessions import FINAL_EPOCH, SessionKey, ShareSession
from ottla.handlers.authorization import DENIED
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    from kio.schema.share_acknowledge.v2.request import ShareAcknowledgeRequest

    from ottla.protocol.messages.share_fetch import ShareFetchRequest

RENEW_SINCE = 2
NO_TOPIC = UUID(int=0)

Acknowledgements = Mapping[TopicIdPartition, Sequence[Acknowledgement]]
Errors = dict[TopicIdPartition, ApiError]


def validate_readable(
    broker: Broker, context: RequestContext, topic_partition: TopicIdPartition
) -> None:
    name = broker.image.topic_name(topic_partition.topic_id)
    if name is not None and not context.access.authorize(Operation.READ, ResourceType.TOPIC, name):
        raise ApiError(DENIED.code, DENIED.message)


def session_key(group_id: str | None, member_id: str | None) -> SessionKey:
    if not group_id:
        raise ApiError(ErrorCode.invalid_group_id, "the group id is empty")
    if not member_id:
        raise ApiError(ErrorCode.invalid_request, "the member id is empty")
    return SessionKey(group_id, member_id)


def continued_session(broker: Broker, key: SessionKey, epoch: int) -> ShareSession:
    """The session of a request after the first; the last request closes it."""
    if epoch == FINAL_EPOCH:
        return broker.share.sessions.close(key)
    return broker.share.sessions.advance(key, epoch)


def acknowledgements_of(
    request: "ShareFetchRequest | ShareAcknowledgeRequest",
) -> Acknowledgements:
    """Of every partition that the request names."""
    return {
        TopicIdPartition(topic.topic_id or NO_TOPIC, partition.partition_index): tuple(
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in partition.acknowledgement_batches
        )
        for topic in request.topics
        for partition in topic.partitions
    }


def _validate_renewal(broker: Broker, group_id: str, *, may_renew: bool) -> None:
    if not may_renew:
        raise ApiError(ErrorCode.invalid_request, "a request that renews locks has to say so")
    if not broker.share.config(group_id).renewals:
        raise ApiError(ErrorCode.invalid_record_state, "locks of this group cannot be renewed")


async def acknowledge(
    broker: Broker,
    context: RequestContext,
    key: SessionKey,
    acknowledgements: Acknowledgements,
    *,
    may_renew: bool,
) -> Errors:
    """Returns once everything is durable; the result has the refusals, by partition."""
    errors: Errors = {}

    async def acknowledge(
        topic_partition: TopicIdPartition, batches: Sequence[Acknowledgement]
    ) -> None:
        try:
            validate_readable(broker, context, topic_partition)
            if any(AcknowledgeType.RENEW in batch.types for batch in batches):
                _validate_renewal(broker, key.group_id, may_renew=may_renew)
            led = await broker.share.partitions.find(key.group_id, topic_partition)
            await led.acknowledge(key.member_id, batches)
        except ApiError as error:
            errors[topic_partition] = error.with_traceback(None)

    await asyncio.gather(*(acknowledge(*each) for each in acknowledgements.items() if each[1]))
    return errors
