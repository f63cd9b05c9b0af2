"""OffsetCommit (8): v2-v10.

Commits a group's offsets. Topics and partitions that do not exist are rejected one by one.

v3   throttle time in the response
v5   no retention time: the broker's holds (KIP-211)
v6   the leader epoch of the last record that was read (KIP-320)
v7   group instance id (KIP-345)
v8   flexible
v9   members of consumer groups (KIP-848)
v10  topic ids for names (KIP-516)
"""

from asyncio import Future
from collections.abc import Sequence
from typing import Final

from ottla.handlers.authorization import DENIED, access_of
from ottla.handlers.broker import Broker
from ottla.handlers.throttling import throttle_request
from ottla.network.session import Session
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_offset_commit import (
    CommittedTopic,
    OffsetCommitRequest,
    TopicResult,
    encode_offset_commit_response,
    parse_offset_commit,
)
from ottla.security.acls import Operation, ResourceType

OFFSET_COMMIT_KEY: Final = 8

_REFUSED_BEFORE: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.topic_authorization_failed,
    }
)

# Enum members are slow to look up.
_READ: Final = Operation.READ
_TOPIC: Final = ResourceType.TOPIC
_GROUP: Final = ResourceType.GROUP

# The coordinator has the commit when the handler returns: the next one sees it.
_OVERTAKERS: Final = frozenset({OFFSET_COMMIT_KEY})


def handle_offset_commit(
    broker: Broker, session: Session, header: RequestHeader, frame: memoryview
) -> None:
    version = header.api_version
    request = parse_offset_commit(frame, header.body_position, version)
    asked = request.topics
    session.client_id = header.client_id
    refused: list[TopicResult] = []
    if broker.authorizer is not None:
        request, refused = _authorize(broker, session, request)
        if refused and not request.topics:
            session.send_now(_encode(broker, session, header, asked, refused))
            return
    try:
        results = broker.groups.find(request.group_id).call(
            lambda machine, now_ms: machine.commit_offsets(request, version, now_ms)
        )
    except ApiError as error:
        results = _refusal(broker, request, error)
    if isinstance(results, Future):
        reply = session.reply(_OVERTAKERS)
        results.add_done_callback(
            lambda done: reply.send(
                (
                    _encode(
                        broker, session, header, asked, _results(broker, request, done) + refused
                    ),
                )
            )
        )
    else:
        session.send_now(_encode(broker, session, header, asked, results + refused))


def _encode(
    broker: Broker,
    session: Session,
    header: RequestHeader,
    asked: Sequence[CommittedTopic],
    results: list[TopicResult],
) -> bytes:
    if _count_errors(broker, results):
        results = _refused_first(asked, results)
    throttle_ms = 0
    if broker.quotas.enabled:
        throttle_ms = throttle_request(broker, session, header.client_id)
    return encode_offset_commit_response(
        header.api_version, header.correlation_id, results, throttle_ms
    )


def _authorize(
    broker: Broker, session: Session, request: OffsetCommitRequest
) -> tuple[OffsetCommitRequest, list[TopicResult]]:
    """The rest of the request, and the results of unreadable topics."""
    access = access_of(broker, session)
    if not access.authorize(_READ, _GROUP, request.group_id):
        code = ErrorCode.group_authorization_failed
        return request._replace(topics=[]), [_denied(topic, code) for topic in request.topics]
    allowed, refused = [], []
    for topic in request.topics:
        name = topic.topic or (topic.topic_id and broker.image.topic_name(topic.topic_id))
        if not name or access.authorize(_READ, _TOPIC, name):
            allowed.append(topic)
        else:
            refused.append(_denied(topic, DENIED.code))
    return request._replace(topics=allowed), refused


def _denied(topic: CommittedTopic, code: ErrorCode) -> TopicResult:
    return TopicResult(
        topic.topic, topic.topic_id, [(partition[0], code) for partition in topic.partitions]
    )


def _results(
    broker: Broker, request: OffsetCommitRequest, committed: "Future[list[TopicResult]]"
) -> list[TopicResult]:
    try:
        return committed.result()
    except ApiError as error:
        return _refusal(broker, request, error)


def _count_errors(broker: Broker, results: list[TopicResult]) -> bool:
    """Whether there are any."""
    found = False
    for topic in results:
        for _, code in topic.partitions:
            if code:
                broker.apis[OFFSET_COMMIT_KEY].refuse(code)
                found = True
    return found


def _refused_first(
    asked: Sequence[CommittedTopic], results: list[TopicResult]
) -> list[TopicResult]:
    """What the coordinator is not asked about comes first, topics and partitions, as in Kafka."""
    indexes = {topic.topic_id or topic.topic: index for index, topic in enumerate(asked)}

    def order(topic: TopicResult) -> tuple[bool, int]:
        is_asked = all(code not in _REFUSED_BEFORE for _, code in topic.partitions)
        return is_asked, indexes[topic.topic_id or topic.topic]

    return [
        topic._replace(
            partitions=sorted(topic.partitions, key=lambda x: x[1] not in _REFUSED_BEFORE)
        )
        for topic in sorted(results, key=order)
    ]


def _refusal(broker: Broker, request: OffsetCommitRequest, error: ApiError) -> list[TopicResult]:
    return [_refused_topic(broker, topic, error.code) for topic in request.topics]


def _refused_topic(broker: Broker, topic: CommittedTopic, code: ErrorCode) -> TopicResult:
    """Partitions that do not exist are rejected as such, whatever else is wrong."""
    name, topic_id, partitions = topic
    unknown = ErrorCode.unknown_topic_or_partition
    if not name:
        name = broker.image.topic_name(topic_id) or "" if topic_id else ""
        unknown = ErrorCode.unknown_topic_or_partition if name else ErrorCode.unknown_topic_id
    existing = range(broker.image.partition_count(name) or 0)
    codes = [(item[0], code if item[0] in existing else unknown) for item in partitions]
    return TopicResult(topic.topic, topic_id, codes)
