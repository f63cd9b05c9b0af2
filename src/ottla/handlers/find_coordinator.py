"""FindCoordinator (10): v0-v6.

Names the broker that coordinates a group, a transactional id or the state of a share-partition
(group:topic-id:partition): the leader of the key's partition of `__consumer_offsets`,
`__transaction_state` or `__share_group_state`. The topic is created for the first request. A leader
that does not know of its leadership yet is not named, because it would refuse.

v1  key types: group, transaction
v3  flexible
v4  many keys in one request (KIP-699)
v6  share groups (KIP-932)
"""

from collections.abc import Awaitable

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import Coordinator, FindCoordinatorResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ottla.controller.records import NO_LEADER
from ottla.coordination.coordinators import Coordinators
from ottla.coordination.serving_coordinators import PartitionLeadership
from ottla.groups.coordinator import GroupMachine
from ottla.groups.share.state_coordinator import ShareStateMachine, parse_coordinator_key
from ottla.handlers.authorization import may_act_as_node, not_a_node, refusal
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.cluster_view import addresses
from ottla.handlers.internal_topics import create_internal_topic
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition
from ottla.security.acls import Operation, ResourceType
from ottla.transactions.coordinator import TransactionMachine

_SHARE_KEYS = 2
_RESOURCE_TYPES = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}

AnyCoordinators = (
    Coordinators[GroupMachine] | Coordinators[TransactionMachine] | Coordinators[ShareStateMachine]
)


def handle(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    if request.key_type == _SHARE_KEYS and not may_act_as_node(broker, context.session):
        raise not_a_node(context.session)
    coordinators = _coordinators(broker, request)
    denied = _denied(context, request)
    keys = [key for key in request.coordinator_keys if key not in denied]

    def answer() -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            throttle_time=NO_THROTTLE,
            coordinators=tuple(
                _failed(key, denied[key])
                if key in denied
                else _find(broker, context, coordinators, key)
                for key in request.coordinator_keys
            ),
        )

    async def settle_and_answer() -> FindCoordinatorResponse:
        await _settle(broker, coordinators, keys)
        return answer()

    if all(_is_settled(broker, coordinators, key) for key in keys):
        return answer()
    return settle_and_answer()


def _denied(context: RequestContext, request: FindCoordinatorRequest) -> dict[str, ApiError]:
    resource_type = _RESOURCE_TYPES.get(request.key_type)
    if resource_type is None:
        return {}
    return {
        key: refusal(context.access, Operation.DESCRIBE, resource_type, key)
        for key in request.coordinator_keys
        if not context.access.authorize(Operation.DESCRIBE, resource_type, key)
    }


def error_response(request: FindCoordinatorRequest, error: ApiError) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        throttle_time=NO_THROTTLE,
        coordinators=tuple(_failed(key, error) for key in request.coordinator_keys),
    )


def _coordinators(broker: Broker, request: FindCoordinatorRequest) -> AnyCoordinators:
    match request.key_type:
        case 0:
            return broker.groups
        case 1:
            return broker.transactions.coordinators
        case 2:
            for key in request.coordinator_keys:
                parse_coordinator_key(key)
            return broker.share.coordinators
    raise ApiError(
        ErrorCode.invalid_request, f"coordinators of type {request.key_type} are not known"
    )


async def _settle(broker: Broker, coordinators: AnyCoordinators, keys: list[str]) -> None:
    if broker.image.partition_count(coordinators.topic) is None:
        await create_internal_topic(broker, coordinators.topic)
    leaderships = [_leadership(broker, coordinators, key) for key in keys]
    await broker.coordinators_elsewhere.learn(
        leadership
        for leadership in leaderships
        if leadership is not None and leadership.leader != broker.node_id
    )


def _is_settled(broker: Broker, coordinators: AnyCoordinators, key: str) -> bool:
    """Whether it is known if the coordinator is serving."""
    leadership = _leadership(broker, coordinators, key)
    return leadership is not None and (
        leadership.leader in (broker.node_id, NO_LEADER)
        or broker.coordinators_elsewhere.is_known(leadership)
    )


def _leadership(
    broker: Broker, coordinators: AnyCoordinators, key: str
) -> PartitionLeadership | None:
    """Of the key's partition; None if there is none."""
    index = coordinators.partition_of(key)
    state = None if index is None else broker.image.partition(coordinators.topic, index)
    if index is None or state is None:
        return None
    partition = TopicPartition(coordinators.topic, index)
    return PartitionLeadership(partition, state.leader, state.leader_epoch)


def _find(
    broker: Broker, context: RequestContext, coordinators: AnyCoordinators, key: str
) -> Coordinator:
    leadership = _leadership(broker, coordinators, key)
    if leadership is None or leadership.leader == NO_LEADER:
        return _failed(key, _NO_LEADER)
    if leadership.leader == broker.node_id:
        is_served = coordinators.is_served(leadership.partition.partition)
    else:
        is_served = broker.coordinators_elsewhere.is_known(leadership)
    if not is_served:
        return _failed(key, _NOT_SERVED)
    for address in addresses(broker.image, context.listener_name):
        if address.broker.broker_id == leadership.leader:
            return Coordinator(
                key=key,
                node_id=address.broker.broker_id,
                host=address.host,
                port=address.port,
                error_code=ErrorCode.none,
                error_message=None,
            )
    return _failed(key, _NO_LEADER)


_NO_LEADER = ApiError(ErrorCode.coordinator_not_available, "the coordinator has no leader now")
_NOT_SERVED = ApiError(
    ErrorCode.coordinator_not_available, "the coordinator is not ready yet; try again"
)


def _failed(key: str, error: ApiError) -> Coordinator:
    return refused(Coordinator, error, key=key, node_id=BrokerId(-1), port=i32(-1))
