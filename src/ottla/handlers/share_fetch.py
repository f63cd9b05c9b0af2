"""ShareFetch (78): v1-v2.

Gives a share group consumer records that no other member of the group has, and accepts its
acknowledgements of earlier ones (KIP-932). Waits up to `max_wait` for `min_bytes`. Batches are sent
whole; the acquired ranges tell which of their records are the consumer's.

v2  acquire mode (KIP-1206): whole batches, in ranges of about `batch_size` records, or not more
    records than `max_records`;
    locks can be renewed (KIP-1222), by a request that fetches nothing;
    what is acquired can be held, in a tagged field of Ottla's own
"""

import enum
from collections.abc import Iterable, Mapping

from kio.schema.share_fetch.v2.response import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from kio.static.primitive import Records, i16, i32, i64

from ottla.coordination.delayed_share_fetch import DelayedShareFetch, ShareFetched, ShareFetchTerms
from ottla.coordination.share_partitions import LedSharePartition
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey, ShareSession
from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.current_leaders import current_leader, leader_endpoints
from ottla.handlers.share_calls import (
    NO_TOPIC,
    RENEW_SINCE,
    Acknowledgements,
    Errors,
    acknowledge,
    acknowledgements_of,
    continued_session,
    session_key,
    validate_readable,
)
from ottla.handlers.throttling import count_shared, fetch_bytes_max
from ottla.network.session import Session
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.leader_hints import NO_LEADER, Leader
from ottla.protocol.messages.delivery_acknowledge import LOCK_MS_MAX
from ottla.protocol.messages.share_fetch import ShareFetchRequest
from ottla.protocol.times import in_milliseconds, milliseconds
from ottla.security.acls import Operation, ResourceType

_NOTHING = ShareFetched(b"", ())


class _AcquireMode(enum.IntEnum):
    """The consumer setting `share.acquire.mode`."""

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


async def handle(
    broker: Broker, context: RequestContext, request: ShareFetchRequest
) -> ShareFetchResponse:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id or "")
    key = session_key(request.group_id, request.member_id)
    batch_size = _batch_size(request)
    if not 0 <= request.hold_ms <= LOCK_MS_MAX:
        raise ApiError(ErrorCode.invalid_request, f"a hold has at most {LOCK_MS_MAX} ms")
    acknowledgements = acknowledgements_of(request)
    session = _session(broker, context, key, request, acknowledgements)
    may_renew = request.is_renew_ack and context.api_version >= RENEW_SINCE
    refused = await acknowledge(broker, context, key, acknowledgements, may_renew=may_renew)
    fetched: dict[TopicIdPartition, ShareFetched] = {}
    errors: Errors = {}
    if request.share_session_epoch == FINAL_EPOCH:
        broker.share.partitions.release(*key)
    elif not request.is_renew_ack:
        fetched, errors = await _fetch(broker, context, session, request, batch_size)
        session.served(fetched)
    answered = [*fetched, *errors, *(each for each in acknowledgements if acknowledgements[each])]
    if request.share_session_epoch == INITIAL_EPOCH:
        answered.extend(session.partitions)
    topic_partitions = {
        topic_partition: _partition(
            topic_partition,
            fetched.get(topic_partition, _NOTHING),
            errors.get(topic_partition),
            refused.get(topic_partition),
            _leader(broker, topic_partition, errors, refused),
        )
        for topic_partition in answered
    }
    throttle_ms = 0
    if broker.quotas.enabled:
        size = sum(len(partition.records) for partition in fetched.values())
        throttle_ms = count_shared(broker, context.session, context.client_id, size)
    lock_ms = broker.share.config(key.group_id).record_lock_duration_ms
    endpoints = _endpoints(broker, context, topic_partitions.values())
    return _response(topic_partitions, lock_ms, throttle_ms, endpoints)


def _batch_size(request: ShareFetchRequest) -> int | None:
    """None if at most `max_records` may be acquired."""
    match request.share_acquire_mode:
        case _AcquireMode.BATCH_OPTIMIZED:
            return max(1, request.batch_size)
        case _AcquireMode.RECORD_LIMIT:
            return None
    raise ApiError(
        ErrorCode.invalid_request, f"{request.share_acquire_mode} is not an acquire mode"
    )


def _session(
    broker: Broker,
    context: RequestContext,
    key: SessionKey,
    request: ShareFetchRequest,
    named: Acknowledgements,
) -> ShareSession:
    if request.share_session_epoch == INITIAL_EPOCH:
        if any(named.values()):
            raise ApiError(
                ErrorCode.invalid_request, "the first request of a session acknowledges nothing"
            )
        session = _open(broker, context.session, key)
    else:
        session = continued_session(broker, key, request.share_session_epoch)
    forgotten = (
        TopicIdPartition(topic.topic_id or NO_TOPIC, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    )
    session.update(named, forgotten)
    return session


def _open(broker: Broker, connection: Session, key: SessionKey) -> ShareSession:
    """A consumer whose connection breaks loses its locks."""
    sessions = broker.share.sessions

    def on_close(_: Session) -> None:
        for session in sessions.on_owner_gone(connection):
            broker.share.partitions.release(*session.key)

    def on_half_closed(_: Session) -> None:
        """What a fetch acquires from now on would only wait for its lock to expire."""
        for session in sessions.of_owner(connection):
            if session.abandon is not None:
                session.abandon()

    if not sessions.knows_owner(connection):
        connection.call_on_close(on_close)
        connection.call_on_half_closed(on_half_closed)
    return sessions.open(key, connection)


async def _fetch(
    broker: Broker,
    context: RequestContext,
    session: ShareSession,
    request: ShareFetchRequest,
    batch_size: int | None,
) -> tuple[dict[TopicIdPartition, ShareFetched], Errors]:
    errors: Errors = {}
    partitions: dict[TopicIdPartition, LedSharePartition] = {}
    config = broker.share.config(session.key.group_id)
    for topic_partition in list(session.partitions):
        try:
            validate_readable(broker, context, topic_partition)
            led = await broker.share.partitions.find(session.key.group_id, topic_partition)
            led.refresh(config)
            partitions[topic_partition] = led
        except ApiError as error:
            errors[topic_partition] = error.with_traceback(None)
    bytes_max = broker.settings.fetch_bytes_max
    if broker.quotas.enabled:
        bytes_max = max(1, fetch_bytes_max(broker, context.session, context.client_id))
    terms = ShareFetchTerms(
        max_wait_ms=0 if errors else in_milliseconds(request.max_wait),
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, bytes_max),
        records_max=request.max_records,
        batch_size=batch_size,
        committed_only=config.committed_only,
        hold_ms=request.hold_ms,
    )
    fetch = DelayedShareFetch(
        session.key.member_id, partitions, terms, broker.process.loop, broker.process.executor
    )
    session.abandon = fetch.abandon
    if context.session.receiver.eof or not broker.share.sessions.has(session):
        fetch.abandon()  # Its connection broke while a share-partition was loading.
    fetched = await fetch.run()
    return fetched, errors | fetch.errors


def _leader(
    broker: Broker, topic_partition: TopicIdPartition, errors: Errors, refused: Errors
) -> Leader:
    for error in (errors.get(topic_partition), refused.get(topic_partition)):
        if error is not None:
            leader = current_leader(broker.image, *topic_partition, error.code)
            if leader is not None:
                return leader
    return NO_LEADER


def _endpoints(
    broker: Broker, context: RequestContext, partitions: Iterable[PartitionData]
) -> tuple[NodeEndpoint, ...]:
    leader_ids = {int(each.current_leader.leader_id) for each in partitions}
    return tuple(
        NodeEndpoint(**each._asdict())
        for each in leader_endpoints(broker.image, context.listener_name, leader_ids - {-1})
    )


def _partition(
    topic_partition: TopicIdPartition,
    fetched: ShareFetched,
    error: ApiError | None,
    refused: ApiError | None,
    leader: Leader,
) -> PartitionData:
    return PartitionData(
        partition_index=i32(topic_partition.partition),
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
        acknowledge_error_code=i16(0 if refused is None else refused.code),
        acknowledge_error_message=None if refused is None else refused.message,
        current_leader=LeaderIdAndEpoch(**leader._asdict()),
        records=Records(fetched.records),
        acquired_records=tuple(
            AcquiredRecords(
                first_offset=i64(first), last_offset=i64(last), delivery_count=i16(count)
            )
            for first, last, count in fetched.acquired
        ),
    )


def _response(
    topic_partitions: Mapping[TopicIdPartition, PartitionData],
    lock_ms: int,
    throttle_ms: int,
    endpoints: tuple[NodeEndpoint, ...],
) -> ShareFetchResponse:
    topic_ids = dict.fromkeys(topic_partition.topic_id for topic_partition in topic_partitions)
    return ShareFetchResponse(
        throttle_time=milliseconds(throttle_ms),
        error_code=ErrorCode.none,
        acquisition_lock_timeout=milliseconds(lock_ms),
        responses=tuple(
            ShareFetchableTopicResponse(
                topic_id=topic_id,
                partitions=tuple(
                    data
                    for topic_partition, data in topic_partitions.items()
                    if topic_partition.topic_id == topic_id
                ),
            )
            for topic_id in topic_ids
        ),
        node_endpoints=endpoints,
    )
