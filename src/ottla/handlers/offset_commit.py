"""OffsetCommit (8): v2-v10.

Stores how far a group has read. Topics and partitions that do not exist are refused one by one.

v3   throttle time in the response
v5   no retention time: the broker's holds (KIP-211)
v6   the leader epoch of the last record that was read (KIP-320)
v7   group instance id (KIP-345)
v8   flexible
v9   members of consumer groups (KIP-848)
v10  topic ids for names (KIP-516)
"""

from asyncio import Future

from ottla.handlers.broker import Broker
from ottla.network.session import Reply, Session
from ottla.protocol.errors import ApiError
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_offset_commit import (
    OffsetCommitRequest,
    TopicResult,
    encode_offset_commit_response,
    parse_offset_commit,
)


def handle_offset_commit(
    broker: Broker, session: Session, header: RequestHeader, frame: memoryview
) -> None:
    version = header.api_version
    request = parse_offset_commit(frame, header.body_position, version)
    session.client_id = header.client_id
    try:
        results = broker.groups.find(request.group_id).call(
            lambda machine, now_ms: machine.commit_offsets(request, version, now_ms)
        )
    except ApiError as error:
        results = _refusal(request, error)
    if isinstance(results, Future):
        reply = session.reply()
        results.add_done_callback(lambda done: _answer(reply, header, request, done))
    else:
        session.send_now(encode_offset_commit_response(version, header.correlation_id, results))


def _answer(
    reply: Reply,
    header: RequestHeader,
    request: OffsetCommitRequest,
    committed: "Future[list[TopicResult]]",
) -> None:
    try:
        results = committed.result()
    except ApiError as error:
        results = _refusal(request, error)
    frame = encode_offset_commit_response(header.api_version, header.correlation_id, results)
    reply.send((frame,))


def _refusal(request: OffsetCommitRequest, error: ApiError) -> list[TopicResult]:
    return [
        TopicResult(topic, topic_id, [(item.partition, error.code) for item in partitions])
        for topic, topic_id, partitions in request.topics
    ]
