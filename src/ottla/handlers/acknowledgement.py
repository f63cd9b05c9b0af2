"""The response to a produce request: the outcome of each append, and when it is sent.

    awaiting   some partition has not yet acknowledged its append
    answered   all have, or failed, or the request has timed out

A partition completes its append here directly: once it is as safe as `acks` demands, or with the
error that prevents it.
"""

from functools import partial
from typing import Final
from uuid import UUID

from ottla.handlers.broker import Broker
from ottla.handlers.current_leaders import current_leader, leader_endpoints
from ottla.network.session import Reply, Session
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_produce import (
    PartitionResult,
    RecordErrorResult,
    TopicResult,
    encode_produce_response,
)
from ottla.records.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidRecord,
    InvalidTimestamp,
    RecordError,
    UnsupportedFormat,
)
from ottla.replication.partition_leader import PartitionLeader
from ottla.storage.appended import Appended

PRODUCE_KEY: Final = 0

_RECORD_ERROR_CODES: dict[type[RecordError], ErrorCode] = {
    BatchTooLarge: ErrorCode.message_too_large,
    CorruptBatch: ErrorCode.corrupt_message,
    InvalidRecord: ErrorCode.invalid_record,
    InvalidTimestamp: ErrorCode.invalid_timestamp,
    UnsupportedFormat: ErrorCode.unsupported_for_message_format,
}
# Another leader may have what is missing here; for an idempotent producer a gap is fatal.
_PERHAPS_FOLLOWER = ApiError(
    ErrorCode.not_leader_or_follower, "the controller may have made another broker the leader"
)

_Append = tuple[str | UUID, list[PartitionResult], int]  # Its topic, and the index of its result.


class Acknowledgement:
    __slots__ = (
        "_appends_count",
        "_awaited",
        "_broker",
        "_header",
        "_reply",
        "_session",
        "_throttle_ms",
        "_topics",
        "deadline_ms",
        "has_failed",
    )

    def __init__(self, broker: Broker, topics: list[TopicResult]) -> None:
        self.has_failed = False  # An append failed, or a partition accepted none.
        self.deadline_ms = 0.0
        self._broker = broker
        self._topics = topics
        self._appends_count = 0
        self._awaited: dict[int, _Append] = {}
        self._reply: Reply | None = None  # None until all appends are made.

    def wait_for(
        self,
        leader: PartitionLeader,
        appended: Appended,
        acks: int,
        topic: str | UUID,
        results: list[PartitionResult],
    ) -> None:
        """Answer only after this append, whose result is the last of `results`."""
        number = self._appends_count
        self._appends_count = number + 1
        self._awaited[number] = topic, results, len(results) - 1
        leader.wait_for_acknowledgement(appended, acks, partial(self._complete, number))

    def start(
        self,
        session: Session,
        reply: Reply,
        header: RequestHeader,
        timeout_ms: int,
        throttle_ms: int,
    ) -> None:
        """All appends are made; `reply` is sent once none is awaited."""
        self._session = session
        self._reply = reply
        self._header = header
        self._throttle_ms = throttle_ms
        self.deadline_ms = self._broker.process.clock.monotonic_ms() + timeout_ms
        if self._awaited:
            self._broker.replicas.delayed_produces.add(self)
        else:
            self._answer(reply)

    def expire(self) -> None:
        """The request has timed out; later outcomes are ignored."""
        for append in self._awaited.values():
            self._fail(append, ApiError(ErrorCode.request_timed_out))
        self._awaited.clear()
        if self._reply is not None:
            self._answer(self._reply)

    def _complete(self, number: int, error: ApiError | None) -> None:
        append = self._awaited.pop(number, None)
        if append is None:
            return
        if error is not None:
            self._fail(append, error)
        if not self._awaited and self._reply is not None:
            self._answer(self._reply)

    def _fail(self, append: _Append, error: ApiError) -> None:
        self.has_failed = True
        topic, results, index = append
        results[index] = failure_of(self._broker, topic, results[index].partition, error)

    def _answer(self, reply: Reply) -> None:
        self._broker.replicas.delayed_produces.discard(self)
        header, topics, throttle_ms = self._header, self._topics, self._throttle_ms
        if self.has_failed:
            answer = encode_with_leaders(self._broker, self._session, header, topics, throttle_ms)
        else:
            version, correlation_id = header.api_version, header.correlation_id
            answer = encode_produce_response(version, correlation_id, topics, throttle_ms)
        reply.send((answer,))


def encode_with_leaders(
    broker: Broker,
    session: Session,
    header: RequestHeader,
    topics: list[TopicResult],
    throttle_ms: int,
) -> bytes:
    """Names the leaders of partitions led elsewhere, with their addresses."""
    leaders = {
        result.current_leader.leader_id
        for topic in topics
        for result in topic.partitions
        if result.current_leader is not None
    }
    endpoints = leader_endpoints(broker.image, session.listener_name, leaders) if leaders else ()
    return encode_produce_response(
        header.api_version, header.correlation_id, topics, throttle_ms, endpoints
    )


def failure_of(
    broker: Broker, topic: str | UUID, partition: int, error: ApiError | RecordError
) -> PartitionResult:
    if isinstance(error, ApiError):
        if error.code is ErrorCode.out_of_order_sequence_number and not broker.is_in_touch():
            error = _PERHAPS_FOLLOWER
        leader = current_leader(broker.image, topic, partition, error.code)
        broker.apis[PRODUCE_KEY].refuse(error.code)
        return PartitionResult(
            partition, error.code, error_message=error.message, current_leader=leader
        )
    record_errors = [
        RecordErrorResult(index, str(error)) for index in getattr(error, "record_indexes", ())
    ]
    code = _RECORD_ERROR_CODES[type(error)]
    broker.apis[PRODUCE_KEY].refuse(code)
    return PartitionResult(
        partition,
        code,
        error_message=str(error),
        record_errors=record_errors,
    )
