"""Fetch (1) of the metadata log: v12-v18, from the other replicas of the quorum, voters or not.

The partition is identified by its topic id, which no other topic has. The leader of the quorum
answers with records; the others name the leader.

v15  the replica in a tagged field
v16  the leader's address
v17  directory ids (KIP-853)
v18  the high watermark that the replica knows (KIP-1166)
"""

from typing import Final

from ottla.handlers.api import FOLLOWER_FETCH_KEY
from ottla.handlers.authorization import may_act_as_node, not_a_node
from ottla.handlers.broker import Broker
from ottla.handlers.refusals import error_response
from ottla.network.session import Reply, Session
from ottla.protocol.codec import read_request, write_response
from ottla.protocol.errors import ApiError
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_fetch import FetchRequest, parse_fetch
from ottla.protocol.topic_names import CLUSTER_METADATA_TOPIC_ID

# After a fetch from another node: that node's next one, on the same connection.
REPLICA_OVERTAKERS: Final = frozenset({1})


def is_of_metadata(request: FetchRequest) -> bool:
    return bool(request.topics) and request.topics[0].topic_id == CLUSTER_METADATA_TOPIC_ID


def handle_metadata_fetch(
    broker: Broker, session: Session, header: RequestHeader, frame: memoryview
) -> None:
    session.api = broker.apis[FOLLOWER_FETCH_KEY]
    request = read_request(header, frame)
    reply = session.reply(REPLICA_OVERTAKERS)
    if not may_act_as_node(broker, session):
        reply.send((_frame(header, error_response(request, not_a_node(session))),))
        return
    session.receiver.become_peer()
    broker.process.supervisor.start("metadata fetch", _answer(broker, reply, header, request))


def handle_only_metadata_fetch(
    broker: Broker, session: Session, header: RequestHeader, frame: memoryview
) -> None:
    """While the node starts, and serves no clients yet."""
    if is_of_metadata(parse_fetch(frame, header.body_position, header.api_version)):
        handle_metadata_fetch(broker, session, header, frame)
    else:
        session.close("the node starts")


async def _answer(broker: Broker, reply: Reply, header: RequestHeader, request: object) -> None:
    try:
        response: object = await broker.quorum.handle(request)
    except ApiError as error:
        response = error_response(request, error)
    reply.send((_frame(header, response),))


def _frame(header: RequestHeader, response: object) -> bytes:
    return write_response(header.api_key, header.api_version, header.correlation_id, response)
