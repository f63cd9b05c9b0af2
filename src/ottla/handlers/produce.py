"""Produce (0): v3-v13.

Appends one batch per partition and answers once the records are as safe as `acks` demands: 0 is
never answered, 1 waits for the leader, -1 for every in-sync replica. With `flush.policy = ack` both
also wait for the disk.

v5   log start offset in the response
v8   record errors and error message (KIP-467)
v9   flexible
v10  the current leader in the response (KIP-951)
v11  TRANSACTION_ABORTABLE for a partition that is not in the transaction (KIP-890)
v12  the first write in a transaction adds its partition to it, without AddPartitionsToTxn
v13  topic ids for names (KIP-516)
"""

from typing import Final

from ottla.handlers.acknowledgement import Acknowledgement, encode_with_leaders, failure_of
from ottla.handlers.admission import Admission
from ottla.handlers.broker import Broker
from ottla.handlers.produce_authorization import authorize_produce, is_known_writable
from ottla.handlers.throttling import throttle_produce
from ottla.network.session import NOBODY, Reply, Session
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_produce import (
    PartitionResult,
    ProducedTopic,
    ProduceRequest,
    TopicResult,
    encode_produce_response,
    parse_produce,
)
from ottla.records.batch import TRANSACTIONAL_FLAG
from ottla.records.errors import InvalidRecord, InvalidTimestamp, RecordError
from ottla.records.validation import (
    find_outside,
    validate_keys,
    validate_produced,
    validate_records,
)
from ottla.replication.partition_leader import ACKS_ALL, PartitionLeader
from ottla.replication.unsynced_writes import Unsynced, UnsyncedWrites
from ottla.storage.appended import Appended
from ottla.storage.config import LogConfig

# Limits what examining records may cost the requests behind this one.
DECOMPRESSED_RATIO_MAX = 10

_ACKS = frozenset({0, 1, ACKS_ALL})

# The records are in the log when the handler returns: later ones go behind them, whatever is waited
# for. Everything else waits: it could tell the difference.
_OVERTAKERS: Final = frozenset({0})

# Skips the argument checks of the constructors, which take longer than the rest.
_new_tuple = tuple.__new__

_ADMIN_CLIENT = "__admin_client"  # This client may write to internal topics, as in Kafka.


def handle_produce(
    broker: Broker, session: Session, header: RequestHeader, frame: memoryview
) -> None:
    _, version, correlation_id, client_id, body_position = header
    request = parse_produce(frame, body_position, version)
    transactional_id, acks, timeout_ms, produced = request
    refused: list[TopicResult] = []
    if broker.authorizer is not None and (
        transactional_id is not None or not is_known_writable(broker, session, produced)
    ):
        request, refused = authorize_produce(broker, session, request)
    throttle_ms = 0
    if broker.quotas.enabled:
        throttle_ms = throttle_produce(broker, session, client_id, len(frame))
    if acks not in _ACKS:
        topics, delayed, unsynced, failed = refused + _refuse(request), None, None, False
    elif transactional_id is None:
        topics, delayed, unsynced, failed = _append_all(broker, request, client_id, None, refused)
    else:
        _produce_in_transaction(broker, session, header, request, refused, throttle_ms=throttle_ms)
        return
    if acks == 0:
        if unsynced is None:
            session.api.unanswered += 1
        else:
            _writes_without_answer(session).add_all(unsynced)
        _close_on_failure(session, topics)
    elif delayed is not None:
        reply = session.reply(_OVERTAKERS)
        delayed.start(session, reply, header, timeout_ms, throttle_ms)
    elif failed:
        session.send_now(encode_with_leaders(broker, session, header, topics, throttle_ms))
    else:
        session.send_now(encode_produce_response(version, correlation_id, topics, throttle_ms))


def _produce_in_transaction(
    broker: Broker,
    session: Session,
    header: RequestHeader,
    request: ProduceRequest,
    refused: list[TopicResult],
    *,
    throttle_ms: int,
) -> None:
    assert request.transactional_id is not None, "the caller has looked"
    admission = Admission(broker, request.transactional_id, header.api_version, refused)
    waiting = admission.writes_to_ask_for(request)
    reply = session.reply(_OVERTAKERS if waiting is None else NOBODY)
    if waiting is None:
        _append_and_answer(
            broker, session, reply, header, request, admission, throttle_ms=throttle_ms
        )
    else:
        # The frame is only valid during this call.
        kept = request._replace(topics=[_kept(topic) for topic in request.topics])
        turn = broker.transactions.pending_writes.queue(waiting.producer.id)

        async def append_when_admitted() -> None:
            async with turn:
                await admission.ask(waiting)
                _append_and_answer(
                    broker, session, reply, header, kept, admission, throttle_ms=throttle_ms
                )
                admission.end()
                reply.let_pass(_OVERTAKERS)

        broker.process.supervisor.start("Produce", append_when_admitted())


def _append_and_answer(
    broker: Broker,
    session: Session,
    reply: Reply,
    header: RequestHeader,
    request: ProduceRequest,
    admission: Admission,
    *,
    throttle_ms: int,
) -> None:
    topics, delayed, unsynced, _ = _append_all(
        broker, request, header.client_id, admission, admission.refused
    )
    if request.acks == 0:
        if unsynced is None:
            reply.skip()
        else:
            UnsyncedWrites(reply).add_all(unsynced)
        _close_on_failure(session, topics)
    elif delayed is None:
        reply.send((encode_with_leaders(broker, session, header, topics, throttle_ms),))
    else:
        delayed.start(session, reply, header, request.timeout_ms, throttle_ms)


def _writes_without_answer(session: Session) -> UnsyncedWrites:
    writes = session.attachment
    if not isinstance(writes, UnsyncedWrites) or not writes.reply.is_newest:
        writes = session.attachment = UnsyncedWrites(session.reply(_OVERTAKERS))
    return writes


def _kept(topic: ProducedTopic) -> ProducedTopic:
    partitions = [
        item if item.records is None else item._replace(records=memoryview(bytearray(item.records)))
        for item in topic.partitions
    ]
    return topic._replace(partitions=partitions)


def _append_all(
    broker: Broker,
    request: ProduceRequest,
    client_id: str | None,
    admission: Admission | None,
    refused: list[TopicResult],
) -> tuple[list[TopicResult], Acknowledgement | None, list[Unsynced] | None, bool]:
    """The results; what some of them wait for; with acks=0, what readers wait for; whether some of
    them have failed already."""
    _, acks, _, produced_topics = request
    find = broker.replicas.find
    now_ms = broker.process.clock.now_ms()
    delayed: Acknowledgement | None = None
    unsynced: list[Unsynced] | None = None
    topics = refused  # The other results are appended.
    failed = bool(refused)
    for topic, topic_id, produced in produced_topics:
        results: list[PartitionResult] = []
        topics.append(_new_tuple(TopicResult, (topic, topic_id, results)))
        for _, _, index, records in produced:
            try:
                partition = find(topic_id or topic, index)
                leader = partition.leader
                assert leader is not None, "find has looked"
                if partition.is_internal and client_id != _ADMIN_CLIENT:
                    raise ApiError(*_INTERNAL_TOPIC)
                appended = _append(leader, records, acks, now_ms, admission)
            except (ApiError, RecordError) as error:
                results.append(failure_of(broker, topic_id or topic, index, error))
                failed = True
                continue
            first_offset, _, append_time_ms, _ = appended
            start_offset = partition.log.log_start_offset
            fields = (index, 0, first_offset, append_time_ms, start_offset, None, (), None)
            results.append(_new_tuple(PartitionResult, fields))
            if leader.acknowledged(appended, acks):
                continue
            if acks == 0:
                unsynced = unsynced or []
                unsynced.append((leader, appended.last_offset + 1))
            else:
                delayed = delayed or Acknowledgement(broker, topics)
                delayed.wait_for(leader, appended, acks, topic_id or topic, results)
    if failed and delayed is not None:
        delayed.has_failed = True
    return topics, delayed, unsynced, failed


def _append(
    leader: PartitionLeader,
    records: memoryview | None,
    acks: int,
    now_ms: int,
    admission: Admission | None,
) -> Appended:
    if records is None:
        raise InvalidRecord("there are no records")
    partition = leader.partition
    config = partition.log.config
    header = validate_produced(records, max_batch_bytes=config.max_message_bytes)
    if header.attributes & TRANSACTIONAL_FLAG:
        if admission is None:
            raise ApiError(*_NO_TRANSACTIONAL_ID)
        admission.validate(partition, header)
    if config.compact:
        validate_keys(records, limit=DECOMPRESSED_RATIO_MAX * config.max_message_bytes)
    if config.record_validation_enable:
        validate_records(records, limit=DECOMPRESSED_RATIO_MAX * config.max_message_bytes)
    try:
        if acks == ACKS_ALL:
            leader.validate_in_sync_replicas()
        return leader.append(records, header, now_ms)
    except ApiError as error:
        code, message = partition.explain_refusal(header, error)
        if code is ErrorCode.invalid_timestamp:
            raise InvalidTimestamp(message, _untimely(records, config, now_ms)) from error
        raise ApiError(code, message) from error


def _untimely(records: memoryview, config: LogConfig, now_ms: int) -> list[int]:
    """Indexes of the records that the topic rejects for their timestamps."""
    return find_outside(
        records,
        now_ms - config.message_timestamp_before_max_ms,
        now_ms + config.message_timestamp_after_max_ms,
        limit=DECOMPRESSED_RATIO_MAX * config.max_message_bytes,
    )


_INTERNAL_TOPIC = (
    ErrorCode.invalid_topic_exception,
    "only the broker writes to internal topics",
)
_NO_TRANSACTIONAL_ID = (
    ErrorCode.invalid_txn_state,
    "transactional records need a transactional id",
)


def _refuse(request: ProduceRequest) -> list[TopicResult]:
    """Nothing is appended: every partition gets the same error."""
    message = f"acks is {request.acks}; it must be 0, 1 or -1"
    return [
        TopicResult(
            topic,
            topic_id,
            [
                PartitionResult(
                    item.partition, ErrorCode.invalid_required_acks, error_message=message
                )
                for item in produced
            ],
        )
        for topic, topic_id, produced in request.topics
    ]


def _close_on_failure(session: Session, topics: list[TopicResult]) -> None:
    """With acks=0, closing the connection is the only way to report a failure."""
    for topic in topics:
        for result in topic.partitions:
            if result.error_code:
                session.close(f"produce with acks=0 failed: {result.error_message}")
                return
