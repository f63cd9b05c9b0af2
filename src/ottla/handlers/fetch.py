"""Fetch (1): v4-v18.

Whole batches from the one that holds the asked offset on, up to the high watermark, or to the last
stable offset for `read_committed`. Waits up to `max_wait_ms` for `min_bytes`. A replica id makes it
the fetch of a follower, which `follower_fetch` serves.

v5   log start offset
v7   incremental fetch sessions (KIP-227)
v9   the leader epoch that the client knows is checked (KIP-320)
v12  flexible
v13  topic ids for names (KIP-516)
"""

from typing import cast

from ottla.handlers.broker import Broker
from ottla.handlers.follower_fetch import handle_follower_fetch
from ottla.handlers.metadata_fetch import handle_metadata_fetch, is_of_metadata
from ottla.network.file_part import Part
from ottla.network.session import Reply, Session
from ottla.protocol.errors import ApiError
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_fetch import (
    TOPIC_ID_FROM,
    FetchRequest,
    PartitionData,
    RecordsPlace,
    encode_fetch_response,
    group_by_topic,
    parse_fetch,
)
from ottla.replication.delayed_fetch import DelayedFetch, Fetched, FetchTerms
from ottla.replication.fetch_sessions import INITIAL_EPOCH, FetchSession, WantedPartition

READ_COMMITTED = 1


def handle_fetch(
    broker: Broker, session: Session, header: RequestHeader, frame: memoryview
) -> None:
    version = header.api_version
    request = parse_fetch(frame, header.body_position, version)
    if is_of_metadata(request):
        handle_metadata_fetch(broker, session, header, frame)
        return
    if request.replica_id >= 0:
        handle_follower_fetch(broker, session, header, request)
        return
    reply = session.reply()
    replicas = broker.replicas
    try:
        fetch_session, wanted = replicas.fetch_sessions.resolve(
            request, by_id=version >= TOPIC_ID_FROM
        )
    except ApiError as error:
        _send(reply, encode_fetch_response(version, header.correlation_id, 0, error.code, 0, ()))
        return

    def answer(fetched: list[Fetched]) -> None:
        session.forget_on_close(fetch.cancel)
        session_id = fetch_session.id if fetch_session is not None else 0
        if fetch_session is not None:
            fetched = _changes(fetch_session, fetched)
        topics = group_by_topic((wanted.topic, data) for wanted, data in fetched)
        _send(
            reply, encode_fetch_response(version, header.correlation_id, 0, 0, session_id, topics)
        )

    terms = _terms(broker, request)
    fetch = DelayedFetch(replicas.find, wanted, terms, broker.loop, answer)
    fetch.start()
    if not fetch.done:
        session.call_on_close(fetch.cancel)


def _terms(broker: Broker, request: FetchRequest) -> FetchTerms:
    return FetchTerms(
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, broker.fetch_bytes_max),
        max_wait_ms=request.max_wait_ms,
        committed_only=request.isolation_level == READ_COMMITTED,
    )


def _changes(session: FetchSession, fetched: list[Fetched]) -> list[Fetched]:
    """What a session has to be told: all in the first answer, later only what is new."""
    first = session.epoch == INITIAL_EPOCH
    changes = [item for item in fetched if first or _is_news(*item)]
    for wanted, data in changes:
        wanted.sent_high_watermark = data.high_watermark
        wanted.sent_log_start_offset = data.log_start_offset
    session.served([wanted for wanted, data in changes if data.records is not None])
    return changes


def _is_news(wanted: WantedPartition, data: PartitionData) -> bool:
    return (
        data.records is not None
        or data.error_code != 0
        or data.high_watermark != wanted.sent_high_watermark
        or data.log_start_offset != wanted.sent_log_start_offset
    )


def _send(reply: Reply, parts: list[bytes | RecordsPlace]) -> None:
    # The records places are the log slices that were read, which a session can send.
    reply.send(cast("list[Part]", parts))
