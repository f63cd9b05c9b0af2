"""Metadata (3): v0-v13.

The brokers, with their addresses on the client's listener, and the requested topics. Topics that do
not exist are created if client and broker allow it.

v0   an empty list means all topics; replicas that cannot be reached are left out
v1   null means all topics, an empty list none; the controller and racks
v2   cluster id
v4   whether topics may be created
v5   offline replicas
v6   LISTENER_NOT_FOUND, which was LEADER_NOT_AVAILABLE, of a leader without the client's listener
v7   leader epochs
v8   authorized operations
v9   flexible
v10  topic ids in the response (KIP-516)
v12  topics by id
v13  an error for the whole request
"""

from collections.abc import Awaitable, Sequence
from uuid import UUID

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.metadata.v13.request import MetadataRequestTopic
from kio.schema.metadata.v13.response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32

from ottla.controller.config import AUTO_CREATE_TOPICS_ENABLE
from ottla.controller.image import TopicImage
from ottla.controller.records import PartitionRecord
from ottla.handlers.authorization import (
    DENIED,
    NOT_ASKED,
    authorized_operations,
    cluster_operations,
)
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.cluster_view import Reachable, addresses
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.times import NO_THROTTLE, milliseconds
from ottla.protocol.topic_names import is_topic_name
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, INTERNAL_TOPICS
from ottla.security.acls import CLUSTER_NAME, Operation, ResourceType

_LISTENER_NOT_FOUND_SINCE = 6
_CREATION_TIMEOUT_MS = 30_000
_NEVER_AUTO_CREATED = INTERNAL_TOPICS | {CLUSTER_METADATA_TOPIC}


def handle(
    broker: Broker, context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    missing = _names_to_create(broker, context, request)
    failures = _refused_creations(context, missing)
    if len(missing) > len(failures):
        return _create_and_answer(broker, context, request, missing, failures)
    return _answer(broker, context, request, failures)


def error_response(request: MetadataRequest, error: ApiError) -> MetadataResponse:
    topics = tuple(
        _failed_topic(topic.name, topic.topic_id, error.code) for topic in request.topics or ()
    )
    return refused(MetadataResponse, error, topics=topics)


def _names_to_create(
    broker: Broker, context: RequestContext, request: MetadataRequest
) -> list[TopicName]:
    if not request.allow_auto_topic_creation or not request.topics:
        return []
    names = [
        topic.name
        for topic in request.topics
        if topic.topic_id is None
        and topic.name is not None
        and topic.name not in broker.image.topics
        and topic.name not in _NEVER_AUTO_CREATED
        and is_topic_name(topic.name)
        and context.access.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
    ]
    if names and not broker.configs.broker_values()[AUTO_CREATE_TOPICS_ENABLE]:
        return []
    return list(dict.fromkeys(names))


def _refused_creations(
    context: RequestContext, missing: list[TopicName]
) -> dict[TopicName, ErrorCode]:
    access = context.access
    if not missing or access.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        return {}
    return {
        name: DENIED.code
        for name in missing
        if not access.authorize(Operation.CREATE, ResourceType.TOPIC, name)
    }


async def _create_and_answer(
    broker: Broker,
    context: RequestContext,
    request: MetadataRequest,
    missing: list[TopicName],
    refused: dict[TopicName, ErrorCode],
) -> MetadataResponse:
    created = await broker.controller.call(
        CreateTopicsRequest(
            topics=tuple(
                CreatableTopic(
                    name=name,
                    num_partitions=i32(-1),
                    replication_factor=i16(-1),
                    assignments=(),
                    configs=(),
                )
                for name in missing
                if name not in refused
            ),
            timeout=milliseconds(_CREATION_TIMEOUT_MS),
            validate_only=False,
        ),
        caller=context.caller(),
    )
    failures = {topic.name: topic.error_code for topic in created.topics}
    # Created but not in this node's image yet, or created by another request meanwhile.
    for name, code in failures.items():
        if code in {ErrorCode.none, ErrorCode.topic_already_exists}:
            failures[name] = ErrorCode.leader_not_available
    return _answer(broker, context, request, failures | refused)


def _answer(
    broker: Broker,
    context: RequestContext,
    request: MetadataRequest,
    failures: dict[TopicName, ErrorCode],
) -> MetadataResponse:
    also = broker.fenced_brokers.recent()
    listed = addresses(broker.image, context.listener_name, also=also)
    reachable = Reachable(broker.image, listed)
    return MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            MetadataResponseBroker(
                node_id=node.broker.broker_id, host=node.host, port=node.port, rack=node.broker.rack
            )
            for node in listed
        ),
        cluster_id=broker.cluster_id,
        # Any broker accepts requests for the controller, so the nearest one is named.
        controller_id=BrokerId(broker.node_id),
        topics=tuple(_topics(broker, context, request, failures, reachable)),
        cluster_authorized_operations=cluster_operations(
            context, asked=request.include_cluster_authorized_operations
        ),
        error_code=ErrorCode.none,
    )


def _topics(
    broker: Broker,
    context: RequestContext,
    request: MetadataRequest,
    failures: dict[TopicName, ErrorCode],
    reachable: Reachable,
) -> list[MetadataResponseTopic]:
    """In Kafka's order: unknown ids, existing topics, unknown names, denied topics."""
    image, may = broker.image, context.access.may
    if request.topics is None or (context.api_version == 0 and not request.topics):
        return [
            _topic(context, request, topic, reachable)
            for topic in image.topics.values()
            if may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        ]
    unknown_ids, known, unknown_names, denied = [], [], [], []
    for asked in dict.fromkeys(_named_topics(request.topics)):
        if asked.topic_id is not None:
            found = image.topics_by_id.get(asked.topic_id)
        else:
            found = image.topics.get(asked.name or "")
        name = found.name if found is not None else asked.name
        if name and not context.access.authorize(Operation.DESCRIBE, ResourceType.TOPIC, name):
            denied.append(_denied_topic(asked))
        elif found is not None:
            known.append(_topic(context, request, found, reachable))
        elif asked.topic_id is not None:
            unknown_ids.append(_failed_topic(None, asked.topic_id, ErrorCode.unknown_topic_id))
        else:
            assert asked.name is not None
            code = _unknown_name_error(asked.name, failures)
            unknown_names.append(_failed_topic(asked.name, None, code))
    return unknown_ids + known + unknown_names + denied


def _named_topics(topics: Sequence[MetadataRequestTopic]) -> Sequence[MetadataRequestTopic]:
    """Names are ignored if there are ids."""
    by_id = [topic for topic in topics if topic.topic_id is not None]
    if not by_id and any(topic.name is None for topic in topics):
        raise ApiError(ErrorCode.invalid_request, "a topic has neither a name nor an id")
    return by_id or topics


def _topic(
    context: RequestContext,
    request: MetadataRequest,
    topic: TopicImage,
    reachable: Reachable,
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(
            _partition(context.api_version, partition, reachable)
            for partition in topic.partitions.values()
        ),
        topic_authorized_operations=(
            authorized_operations(context, ResourceType.TOPIC, topic.name)
            if request.include_topic_authorized_operations
            else NOT_ASKED
        ),
    )


def _partition(
    version: int, partition: PartitionRecord, reachable: Reachable
) -> MetadataResponsePartition:
    replicas, isr, error = partition.replicas, partition.isr, reachable.error(partition)
    if error is ErrorCode.listener_not_found and version < _LISTENER_NOT_FOUND_SINCE:
        error = ErrorCode.leader_not_available
    if version == 0:
        replicas, isr = reachable.online(replicas), reachable.online(isr)
        is_missed = len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr)
        if error is ErrorCode.none and is_missed:
            error = ErrorCode.replica_not_available
    return MetadataResponsePartition(
        error_code=error,
        partition_index=partition.partition_id,
        leader_id=reachable.leader(partition),
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=reachable.offline(partition.replicas),
    )


def _failed_topic(
    name: TopicName | None, topic_id: UUID | None, code: ErrorCode
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
    )


def _denied_topic(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    """Repeats the request, so that nothing is revealed."""
    return MetadataResponseTopic(
        error_code=DENIED.code,
        name=None if asked.topic_id is not None else asked.name,
        topic_id=asked.topic_id,
        is_internal=False,
        partitions=(),
    )


def _unknown_name_error(name: TopicName, failures: dict[TopicName, ErrorCode]) -> ErrorCode:
    if not is_topic_name(name):
        return ErrorCode.invalid_topic_exception
    return failures.get(name, ErrorCode.unknown_topic_or_partition)
