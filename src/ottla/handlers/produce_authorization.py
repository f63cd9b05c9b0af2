"""Produce: who may write to which topics, and with which transactional id."""

from typing import Final

from ottla.handlers.authorization import DENIED, access_of
from ottla.handlers.broker import Broker
from ottla.network.session import Session
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_produce import PartitionResult, ProducedTopic, ProduceRequest, TopicResult
from ottla.records.batch import HEADER_SIZE, read_header
from ottla.security.acls import Operation, ResourceType

_PRODUCE_KEY: Final = 0
_TRANSACTION_DENIED: Final = ApiError(
    ErrorCode.transactional_id_authorization_failed, "Transactional ID authorization failed."
)


def authorize_produce(
    broker: Broker, session: Session, request: ProduceRequest
) -> tuple[ProduceRequest, list[TopicResult]]:
    """What is left of the request, and the results of the topics that may not be written to."""
    access = access_of(broker, session)
    transactional_id = request.transactional_id
    if (
        transactional_id is not None
        and not access.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        and _is_transactional(request)
    ):
        access.authorize(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        refused = [_refused(broker, topic, _TRANSACTION_DENIED) for topic in request.topics]
        return request._replace(topics=[]), refused
    authorize = access.authorize
    denied = []
    for topic in request.topics:
        name = topic.topic or (topic.topic_id and broker.image.topic_name(topic.topic_id))
        if name and not authorize(Operation.WRITE, ResourceType.TOPIC, name):
            denied.append(topic)
    if not denied:
        return request, []
    allowed = [topic for topic in request.topics if topic not in denied]
    return request._replace(topics=allowed), [_refused(broker, topic, DENIED) for topic in denied]


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
