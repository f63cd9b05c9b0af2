"""Authorizes Produce: its topics and its transactional id."""

from typing import Final

from ottla.handlers.authorization import DENIED, access_of
from ottla.handlers.broker import Broker
from ottla.network.session import Session
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_produce import PartitionResult, ProducedTopic, ProduceRequest, TopicResult
from ottla.records.batch import HEADER_SIZE, read_header
from ottla.security.acls import Operation, ResourceType
from ottla.security.authorizer import Access

_PRODUCE_KEY: Final = 0

# Enum members are slow to look up.
_WRITE: Final = Operation.WRITE
_TOPIC: Final = ResourceType.TOPIC
_TRANSACTION_DENIED: Final = ApiError(
    ErrorCode.transactional_id_authorization_failed, "Transactional ID authorization failed."
)


def is_known_writable(broker: Broker, session: Session, topics: list[ProducedTopic]) -> bool:
    """Whether all were found writable before and the ACLs are unchanged; for the hot path."""
    access = session.access
    if access is None or access.version != broker.image.acls.version:
        return False
    writable = access.writable
    for topic in topics:  # noqa: SIM110 - a generator costs more than the rest of this.
        if (topic[0] or topic[1]) not in writable:
            return False
    return True


def authorize_produce(
    broker: Broker, session: Session, request: ProduceRequest
) -> tuple[ProduceRequest, list[TopicResult]]:
    """The rest of the request, and the results of the topics that may not be written to."""
    access = access_of(broker, session)
    transactional_id = request.transactional_id
    if (
        transactional_id is not None
        and not access.may(_WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        and _is_transactional(request)
    ):
        access.authorize(_WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        refused = [_refused(broker, topic, _TRANSACTION_DENIED) for topic in request.topics]
        return request._replace(topics=[]), refused
    for name, topic_id, _ in request.topics:
        known = name or (topic_id and broker.image.topic_name(topic_id))
        if known and not access.may(_WRITE, _TOPIC, known):
            return _split(broker, access, request)
        if known:
            access.writable.add(name or topic_id)
    return request, []


def _split(
    broker: Broker, access: Access, request: ProduceRequest
) -> tuple[ProduceRequest, list[TopicResult]]:
    allowed, refused = [], []
    for topic in request.topics:
        name = topic.topic or (topic.topic_id and broker.image.topic_name(topic.topic_id))
        if not name or access.authorize(_WRITE, _TOPIC, name):
            allowed.append(topic)
        else:
            refused.append(_refused(broker, topic, DENIED))
    return request._replace(topics=allowed), refused


def _is_transactional(request: ProduceRequest) -> bool:
    return any(
        item.records is not None
        and len(item.records) >= HEADER_SIZE
        and read_header(item.records).is_transactional
        for topic in request.topics
        for item in topic.partitions
    )


def _refused(broker: Broker, topic: ProducedTopic, error: ApiError) -> TopicResult:
    results = []
    for item in topic.partitions:
        broker.apis[_PRODUCE_KEY].refuse(error.code)
        results.append(PartitionResult(item.partition, error.code, error_message=error.message))
    return TopicResult(topic.topic, topic.topic_id, results)
