"""Produce (0): v3-v13.

Appends one batch per partition and answers when the records are as safe as `acks` asks: 0 is never
answered, 1 waits for the leader, -1 for every in-sync replica. With `flush.policy = ack` both wait
for the disk as well.

v5   log start offset in the response
v8   record errors and error message (KIP-467)
v9   flexible
v10  the current leader in the response (KIP-951)
v13  topic ids for names (KIP-516)
"""

from ottla.handlers.broker import Broker
from ottla.network.session import Session
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_produce import (
    PartitionResult,
    ProducedPartition,
    ProduceRequest,
    RecordErrorResult,
    TopicResult,
    encode_produce_response,
    parse_produce,
)
from ottla.records.batch import TRANSACTIONAL_FLAG
from ottla.records.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidRecord,
    InvalidTimestamp,
    RecordError,
    UnsupportedFormat,
)
from ottla.records.validation import validate_keys, validate_produced
from ottla.replication.delayed_produce import DelayedProduce
from ottla.replication.partition import ACKS_ALL, Partition
from ottla.replication.waiters import Waiter
from ottla.storage.log import Appended

# On a compacted topic: what one request may cost those that wait behind it.
DECOMPRESSED_RATIO_MAX = 10

_ACKS = frozenset({0, 1, ACKS_ALL})

_ADMIN_CLIENT = "__admin_client"  # Who calls itself so may write to internal topics, as in Kafka.

_RECORD_ERROR_CODES: dict[type[RecordError], ErrorCode] = {
    BatchTooLarge: ErrorCode.message_too_large,
    CorruptBatch: ErrorCode.corrupt_message,
    InvalidRecord: ErrorCode.invalid_record,
    InvalidTimestamp: ErrorCode.invalid_timestamp,
    UnsupportedFormat: ErrorCode.unsupported_for_message_format,
}


def handle_produce(
    broker: Broker, session: Session, header: RequestHeader, frame: memoryview
) -> None:
    version = header.api_version
    request = parse_produce(frame, header.body_position, version)
    acks = request.acks
    if acks not in _ACKS or request.transactional_id is not None:
        topics = _refuse(request)
        delayed = None
    else:
        topics, delayed = _append_all(broker, request, header.client_id)
    if acks == 0:
        _close_on_failure(session, topics)
    elif delayed is None:
        session.send_now(encode_produce_response(version, header.correlation_id, topics))
    else:
        reply = session.reply()
        broker.replicas.delayed_produces.start(
            delayed,
            lambda: reply.send((encode_produce_response(version, header.correlation_id, topics),)),
            broker.clock.monotonic_ms() + request.timeout_ms,
        )


def _append_all(
    broker: Broker, request: ProduceRequest, client_id: str | None
) -> tuple[list[TopicResult], DelayedProduce | None]:
    acks = request.acks
    find = broker.replicas.find
    now_ms = broker.clock.now_ms()
    delayed: DelayedProduce | None = None
    topics: list[TopicResult] = []
    for topic, topic_id, produced in request.topics:
        results: list[PartitionResult] = []
        topics.append(TopicResult(topic, topic_id, results))
        for item in produced:
            try:
                partition = find(topic_id or topic, item.partition)
                if partition.is_internal and client_id != _ADMIN_CLIENT:
                    raise _INTERNAL_TOPIC
                appended = _append(partition, item, acks, now_ms)
            except (ApiError, RecordError) as error:
                results.append(_failure(item.partition, error))
                continue
            results.append(
                PartitionResult(
                    item.partition,
                    0,
                    appended.first_offset,
                    appended.append_time_ms,
                    partition.log.log_start_offset,
                )
            )
            if acks and not partition.acknowledged(appended, acks):
                delayed = delayed or DelayedProduce()
                waiter = _expect(delayed, results, len(results) - 1)
                partition.wait_for_acknowledgement(appended, acks, waiter)
    return topics, delayed


def _append(partition: Partition, item: ProducedPartition, acks: int, now_ms: int) -> Appended:
    records = item.records
    if records is None:
        raise InvalidRecord("there are no records")
    config = partition.log.config
    header = validate_produced(records, max_batch_bytes=config.max_message_bytes)
    if header.attributes & TRANSACTIONAL_FLAG:
        raise _TRANSACTIONS_UNSUPPORTED
    if config.compact:
        validate_keys(records, limit=DECOMPRESSED_RATIO_MAX * config.max_message_bytes)
    if acks == ACKS_ALL:
        partition.validate_in_sync_replicas()
    return partition.append(records, header, now_ms)


def _expect(delayed: DelayedProduce, results: list[PartitionResult], index: int) -> Waiter:
    def on_failure(error: ApiError) -> None:
        results[index] = _failure(results[index].partition, error)

    return delayed.expect(on_failure)


def _failure(partition: int, error: ApiError | RecordError) -> PartitionResult:
    if isinstance(error, ApiError):
        return PartitionResult(partition, error.code, error_message=error.message)
    record_errors = [
        RecordErrorResult(index, str(error)) for index in getattr(error, "record_indexes", ())
    ]
    return PartitionResult(
        partition,
        _RECORD_ERROR_CODES[type(error)],
        error_message=str(error),
        record_errors=record_errors,
    )


_INTERNAL_TOPIC = ApiError(
    ErrorCode.invalid_topic_exception, "an internal topic is written by the broker alone"
)
_TRANSACTIONS_UNSUPPORTED = ApiError(
    ErrorCode.invalid_txn_state, "transactions are not supported by this broker yet"
)


def _refuse(request: ProduceRequest) -> list[TopicResult]:
    """Nothing is appended: every partition gets the same answer."""
    if request.acks not in _ACKS:
        error = ApiError(
            ErrorCode.invalid_required_acks, f"acks is {request.acks}; it must be 0, 1 or -1"
        )
    else:
        error = _TRANSACTIONS_UNSUPPORTED
    return [
        TopicResult(topic, topic_id, [_failure(item.partition, error) for item in produced])
        for topic, topic_id, produced in request.topics
    ]


def _close_on_failure(session: Session, topics: list[TopicResult]) -> None:
    """With acks=0 a closed connection is the only way to say that something went wrong."""
    for topic in topics:
        for result in topic.partitions:
            if result.error_code:
                session.close(f"produce with acks=0 failed: {result.error_message}")
                return
