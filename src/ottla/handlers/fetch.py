"""Fetch (1): v4-v18.

Whole batches from the one that contains the requested offset, up to the high watermark, or to the
last stable offset for `read_committed`. Waits up to `max_wait_ms` for `min_bytes`. A replica id
makes it a follower's fetch, which `follower_fetch` serves.

v5   log start offset
v7   incremental fetch sessions (KIP-227)
v9   the leader epoch that the client knows is checked (KIP-320)
v11  followers serve consumers, too; a leader sends them to a replica in their rack (KIP-392)
v12  flexible; where a log that ends in the last fetched epoch diverges (KIP-595)
v13  topic ids for names (KIP-516)
v16  the addresses of the current leaders (KIP-951)
"""

from collections.abc import Iterator, Sequence
from typing import Final, cast
from uuid import UUID

from ottla.handlers.authorization import DENIED, access_of
from ottla.handlers.broker import Broker
from ottla.handlers.current_leaders import current_leader, leader_endpoints
from ottla.handlers.follower_fetch import handle_follower_fetch
from ottla.handlers.metadata_fetch import handle_metadata_fetch, is_of_metadata
from ottla.handlers.throttling import fetch_bytes_max, throttle_fetch
from ottla.network.file_part import Part
from ottla.network.session import Reply, Session
from ottla.protocol.errors import ApiError
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_fetch import (
    RACK_FROM,
    TOPIC_ID_FROM,
    FetchRequest,
    PartitionData,
    RecordsSlice,
    encode_fetch_response,
    group_by_topic,
    parse_fetch,
)
from ottla.protocol.leader_hints import Leader, NodeEndpoint
from ottla.replication.delayed_fetch import (
    ChooseReplica,
    DelayedFetch,
    Fetched,
    FetchTerms,
    FindPartition,
)
from ottla.replication.fetch_sessions import INITIAL_EPOCH, FetchSession, WantedPartition
from ottla.replication.partition import Partition
from ottla.replication.replica_selection import LEADER, nearest_replica
from ottla.security.acls import Operation, ResourceType
from ottla.storage.reading import LogSlice

FETCH_KEY: Final = 1
READ_COMMITTED = 1

# Enum members are slow to look up.
_READ: Final = Operation.READ
_TOPIC: Final = ResourceType.TOPIC


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
        broker.apis[FETCH_KEY].refuse(error.code)
        _send(reply, encode_fetch_response(version, header.correlation_id, 0, error.code, 0, ()))
        return

    def answer(fetched: list[Fetched]) -> None:
        session.forget_on_close(fetch.cancel)
        throttle_ms, kept_session = 0, fetch_session
        if broker.quotas.enabled:
            size = sum(cast("LogSlice", data.records).size for _, data in fetched if data.records)
            throttle_ms = throttle_fetch(broker, session, header.client_id, size)
        if throttle_ms:
            fetched = []
            kept_session = replicas.fetch_sessions.keep_if_continued(fetch_session)
        elif fetch_session is not None:
            fetched = _changes(fetch_session, fetched)
        session_id = kept_session.id if kept_session is not None else 0
        named, endpoints = _with_leaders(broker, session, fetched)
        parts = encode_fetch_response(
            version,
            header.correlation_id,
            throttle_ms,
            0,
            session_id,
            group_by_topic(named),
            node_endpoints=endpoints,
        )
        _send(reply, parts)

    terms = _terms(broker, session, header, request)
    find: FindPartition = replicas.find_readable if version >= RACK_FROM else replicas.find
    if broker.authorizer is not None:
        find = _only_readable(broker, session, wanted, find)
    fetch = DelayedFetch(find, wanted, terms, broker.process.loop, answer, replicas.counters)
    fetch.start()
    if not fetch.done:
        session.call_on_close(fetch.cancel)


def _only_readable(
    broker: Broker, session: Session, wanted: Sequence[WantedPartition], find: FindPartition
) -> FindPartition:
    """Unreadable topics are not found. This is decided now, since the rest may run in a thread."""
    access = access_of(broker, session)
    topics = {partition.topic for partition in wanted}
    if access.version == broker.image.acls.version and topics <= access.readable:
        return find
    denied = set()
    for topic in topics:
        name = topic if isinstance(topic, str) else broker.image.topic_name(topic)
        if name is None:
            continue
        if access.authorize(_READ, _TOPIC, name):
            access.readable.add(topic)
        else:
            denied.add(topic)
    if not denied:
        return find

    def find_readable(topic: str | UUID, partition: int) -> Partition:
        if topic in denied:
            raise ApiError(DENIED.code, DENIED.message)
        return find(topic, partition)

    return find_readable


def _terms(
    broker: Broker, session: Session, header: RequestHeader, request: FetchRequest
) -> FetchTerms:
    choose_replica: ChooseReplica | None = None
    if request.rack_id and broker.settings.reads_from_nearest:
        rack_id = request.rack_id

        def choose_replica(partition: Partition, offset: int) -> int:
            return nearest_replica(broker.image, broker.node_id, partition, offset, rack_id)

    limit = broker.settings.fetch_bytes_max
    if broker.quotas.enabled:
        limit = fetch_bytes_max(broker, session, header.client_id)
    max_bytes = min(request.max_bytes, limit)
    return FetchTerms(
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_wait_ms=request.max_wait_ms,
        committed_only=request.isolation_level == READ_COMMITTED,
        choose_replica=choose_replica,
    )


def _with_leaders(
    broker: Broker, session: Session, fetched: list[Fetched]
) -> tuple[Iterator[tuple[str | UUID, PartitionData]], list[NodeEndpoint]]:
    """The fetched data by topic; names the leader where that is another broker (KIP-951).

    Also counts it.
    """
    leaders: dict[int, Leader] = {}
    for index, (wanted, data) in enumerate(fetched):
        if data.records is not None:
            records = cast("LogSlice", data.records)
            broker.replicas.on_fetched(wanted.topic, wanted.partition, records)
        if data.error_code:
            broker.apis[FETCH_KEY].refuse(data.error_code)
            leader = current_leader(broker.image, wanted.topic, wanted.partition, data.error_code)
            if leader is not None:
                leaders[leader.leader_id] = leader
                fetched[index] = (wanted, data._replace(current_leader=leader))
    named = ((wanted.topic, data) for wanted, data in fetched)
    if not leaders:
        return named, []
    return named, leader_endpoints(broker.image, session.listener_name, leaders)


def _changes(session: FetchSession, fetched: list[Fetched]) -> list[Fetched]:
    """What a session must be told: everything in the first response, later only what is new."""
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
        or data.preferred_read_replica != LEADER
        or data.diverging_epoch is not None
        or data.high_watermark != wanted.sent_high_watermark
        or data.log_start_offset != wanted.sent_log_start_offset
    )


def _send(reply: Reply, parts: list[bytes | RecordsSlice]) -> None:
    # The records are log slices, which a session can send.
    reply.send(cast("list[Part]", parts))
