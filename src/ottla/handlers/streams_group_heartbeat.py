"""StreamsGroupHeartbeat (88): v0.

A member of a streams group joins with its topology and gets its tasks (KIP-1071). Missing internal
topics of the topology are created before the response; the member sees them by its next heartbeat.
"""

from collections.abc import Iterable
from dataclasses import replace

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.streams_group_heartbeat.v0.request import StreamsGroupHeartbeatRequest, Topology
from kio.schema.streams_group_heartbeat.v0.response import StreamsGroupHeartbeatResponse
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.groups.streams.topology import InternalTopic, Status, summarized
from ottla.handlers.authorization import require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import caller_of
from ottla.handlers.group_descriptions import topology_topics
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, INTERNAL_TOPICS
from ottla.security.acls import CLUSTER_NAME, Operation, ResourceType

_CREATION_TIMEOUT_MS = 5_000
_NEVER_STRICT = 2**15  # Higher than any version.
_OF_BROKERS = INTERNAL_TOPICS | {CLUSTER_METADATA_TOPIC}
_THERE = frozenset({ErrorCode.none, ErrorCode.topic_already_exists})


async def handle(
    broker: Broker, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    require(context, Operation.READ, ResourceType.GROUP, request.group_id)
    if request.topology is not None:
        _validate_topics(context, request.topology)
    caller = caller_of(context)
    result = await broker.groups.find(request.group_id).submit(
        lambda machine, now_ms: machine.streams_group_heartbeat(request, caller, now_ms)
    )
    if not result.missing:
        return result.response
    return _with_detail(result.response, await _create(broker, context, result.missing))


def _validate_topics(context: RequestContext, topology: Topology) -> None:
    for name in sorted(topology_topics(topology.subtopologies)):
        if name in _OF_BROKERS:
            raise ApiError(
                ErrorCode.streams_invalid_topology, f"{name} is a topic of the brokers' own"
            )
        require(context, Operation.DESCRIBE, ResourceType.TOPIC, name)


async def _create(
    broker: Broker, context: RequestContext, missing: Iterable[InternalTopic]
) -> str | None:
    """Why some of them cannot be created; None if all exist."""
    access = context.access
    denied = [
        topic.name
        for topic in missing
        if not access.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        and not access.authorize(Operation.CREATE, ResourceType.TOPIC, topic.name)
    ]
    if denied:
        return f"Unauthorized to CREATE on topics {summarized(denied)}."
    try:
        created = await broker.controller.call(
            CreateTopicsRequest(
                topics=tuple(map(_creatable, missing)),
                timeout=milliseconds(_CREATION_TIMEOUT_MS),
                validate_only=False,
            ),
            caller=context.caller(strict_from=_NEVER_STRICT),
        )
    except ApiError as error:
        return f"Creation failed: {error.message or error.code.name}."
    failures = [
        f"{topic.name}: {topic.error_message or topic.error_code.name}"
        for topic in created.topics
        if topic.error_code not in _THERE
    ]
    return f"Creation failed: {'; '.join(failures)}." if failures else None


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=TopicName(topic.name),
        num_partitions=i32(topic.partition_count),
        replication_factor=i16(topic.replication_factor or -1),
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs
        ),
    )


def _with_detail(
    response: StreamsGroupHeartbeatResponse, problem: str | None
) -> StreamsGroupHeartbeatResponse:
    if problem is None:
        return response
    statuses = tuple(
        replace(status, status_detail=f"{status.status_detail}; {problem}")
        if int(status.status_code) == Status.MISSING_INTERNAL_TOPICS
        else status
        for status in response.status or ()
    )
    return replace(response, status=statuses)


def error_response(
    request: StreamsGroupHeartbeatRequest, error: ApiError
) -> StreamsGroupHeartbeatResponse:
    return refused(StreamsGroupHeartbeatResponse, error, member_id=request.member_id)
