"""FindCoordinator (10): v0-v6.

Names the broker that coordinates a group: the leader of the partition of `__consumer_offsets` that
the group's id falls on. The first one to ask has that topic created.

v1  key types: group, transaction (transactions are not served)
v3  flexible
v4  many keys in one request (KIP-699)
v6  share groups (not served)
"""

from collections.abc import Awaitable

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.cluster_view import addresses
from ottla.handlers.internal_topics import create_offsets_topic
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

_GROUP, _TRANSACTION = 0, 1


def handle_find_coordinator(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    _validate_key_type(request.key_type)
    if broker.image.partition_count(broker.groups.topic) is None:
        return _create_and_answer(broker, context, request)
    return _answer(broker, context, request)


def error_response(request: FindCoordinatorRequest, error: ApiError) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(_failed(key, error) for key in request.coordinator_keys),
    )


def _validate_key_type(key_type: int) -> None:
    if key_type == _TRANSACTION:
        # Clients take this code as final; after most others they would ask again for ever.
        raise ApiError(
            ErrorCode.transactional_id_authorization_failed,
            "transactions are not supported; use a producer without a transactional id",
        )
    if key_type != _GROUP:
        raise ApiError(ErrorCode.invalid_request, f"coordinators of type {key_type} are not known")


async def _create_and_answer(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    await create_offsets_topic(broker)
    return _answer(broker, context, request)


def _answer(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(_find(broker, context, key) for key in request.coordinator_keys),
    )


def _find(broker: Broker, context: RequestContext, key: str) -> Coordinator:
    partition = broker.groups.partition_of(key)
    state = None if partition is None else broker.image.partition(broker.groups.topic, partition)
    for address in addresses(broker.image, context.listener_name):
        if state is not None and address.broker.broker_id == state.leader:
            return Coordinator(
                key=key,
                node_id=address.broker.broker_id,
                host=address.host,
                port=address.port,
                error_code=ErrorCode.none,
                error_message=None,
            )
    return _failed(
        key, ApiError(ErrorCode.coordinator_not_available, "the coordinator has no leader now")
    )


def _failed(key: str, error: ApiError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=BrokerId(-1),
        host="",
        port=i32(-1),
        error_code=error.code,
        error_message=error.message,
    )
