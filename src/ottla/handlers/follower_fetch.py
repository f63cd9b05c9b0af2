"""Fetch (1) from a follower: as in `fetch`, but up to the log end, committed or not.

Up to v14 the request has a replica id; from v15 on that is in a tagged field, with the broker's
epoch (KIP-903). From v12 on the follower sends the epoch of its last record, and is told where its
log diverges from the leader's (KIP-595).
"""

from typing import cast
from uuid import UUID

from ottla.handlers.api import FOLLOWER_FETCH_KEY
from ottla.handlers.authorization import DENIED, may_act_as_node
from ottla.handlers.broker import Broker
from ottla.handlers.metadata_fetch import REPLICA_OVERTAKERS
from ottla.network.file_part import Part
from ottla.network.session import Session
from ottla.protocol.errors import ApiError
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_fetch import (
    TOPIC_ID_FROM,
    FetchRequest,
    PartitionData,
    encode_fetch_response,
    group_by_topic,
)
from ottla.replication.follower_sessions import FollowerAnswer


def _denied(request: FetchRequest) -> list[tuple[str | UUID, PartitionData]]:
    """Kafka's response to a client that is not a broker."""
    return [
        (topic.topic_id or topic.topic, PartitionData(partition.partition, DENIED.code))
        for topic in request.topics
        for partition in topic.partitions
    ]


def handle_follower_fetch(
    broker: Broker, session: Session, header: RequestHeader, request: FetchRequest
) -> None:
    is_node = may_act_as_node(broker, session)
    if is_node:
        session.receiver.become_peer()
    session.api = broker.apis[FOLLOWER_FETCH_KEY]
    reply = session.reply(REPLICA_OVERTAKERS)

    def respond(answer: FollowerAnswer) -> None:
        if not answer.session_id:
            session.forget_on_close(end)
        parts = encode_fetch_response(
            header.api_version,
            header.correlation_id,
            0,
            answer.error_code,
            answer.session_id,
            group_by_topic(answer.partitions),
        )
        # The records are log slices, which a session can send.
        reply.send(cast("list[Part]", parts))

    def end(_: Session) -> None:
        sessions.end(found)

    sessions = broker.follower_sessions
    if not is_node:
        respond(FollowerAnswer(0, 0, _denied(request)))
        return
    try:
        found = sessions.resolve(request)
    except ApiError as error:
        respond(FollowerAnswer(error.code, 0, []))
        return
    by_id = header.api_version >= TOPIC_ID_FROM
    if request.session_epoch <= 0:
        session.call_on_close(end)
    found.fetch(request, broker.settings.fetch_bytes_max, by_id=by_id, respond=respond)
