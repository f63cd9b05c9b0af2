"""Authorization checks of handlers: `context.access` for cold APIs, `access_of` for hot ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from kio.static.primitive import i32

from ottla.handlers.broker import Broker, RequestContext
from ottla.network.session import Session
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.security.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.security.authorizer import UNLIMITED, Access

FAILURES: Final[Mapping[ResourceType, ErrorCode]] = {
    ResourceType.TOPIC: ErrorCode.topic_authorization_failed,
    ResourceType.GROUP: ErrorCode.group_authorization_failed,
    ResourceType.CLUSTER: ErrorCode.cluster_authorization_failed,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
    ResourceType.DELEGATION_TOKEN: ErrorCode.delegation_token_authorization_failed,
    ResourceType.USER: ErrorCode.delegation_token_authorization_failed,
}

NOT_ASKED: Final = i32(-2147483648)  # Authorized operations were not requested.

# For topics, whether they exist or not.
DENIED: Final = ApiError(ErrorCode.topic_authorization_failed, "Topic authorization failed.")

# The type of resource that owns configs, by config resource type.
_CONFIG_OWNERS: Final[Mapping[int, ResourceType]] = {
    2: ResourceType.TOPIC,
    4: ResourceType.CLUSTER,  # A broker.
    8: ResourceType.CLUSTER,  # The log levels of a broker.
    16: ResourceType.CLUSTER,  # Metrics of clients.
    32: ResourceType.GROUP,
}

_WRITE_TXN_MARKERS_KEY: Final = 27

T = TypeVar("T")


def access_of(broker: Broker, session: Session) -> Access:
    authorizer = broker.authorizer
    if authorizer is None:
        return UNLIMITED
    access = session.access
    if access is None:
        access = session.access = authorizer.access(session.principal, session.peer_address)
    return access


def require(
    context: RequestContext,
    operation: Operation,
    resource_type: ResourceType,
    name: str = CLUSTER_NAME,
) -> None:
    """ApiError if it is not allowed."""
    if not context.access.authorize(operation, resource_type, name):
        raise refusal(context.access, operation, resource_type, name)


def require_cluster(context: RequestContext, operation: Operation) -> None:
    require(context, operation, ResourceType.CLUSTER)


def denied_topics(
    context: RequestContext, operation: Operation, names: Iterable[str]
) -> frozenset[str]:
    authorize = context.access.authorize
    return frozenset(
        name for name in set(names) if not authorize(operation, ResourceType.TOPIC, name)
    )


def split_topics(
    context: RequestContext,
    operation: Operation,
    items: Sequence[T],
    name_of: Callable[[T], str | None],
) -> tuple[list[T], list[T]]:
    """Items whose topic is allowed or not named, and items whose topic is denied."""
    denied = denied_topics(context, operation, filter(None, map(name_of, items)))
    return (
        [item for item in items if name_of(item) not in denied],
        [item for item in items if name_of(item) in denied],
    )


class ConfigResource(Protocol):
    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


def config_refusal(
    context: RequestContext, operation: Operation, resource: ConfigResource
) -> ApiError | None:
    """None if it is allowed. Configs of other resource types are rejected as such."""
    resource_type = _CONFIG_OWNERS.get(resource.resource_type)
    if resource_type is None:
        return None
    is_cluster = resource_type is ResourceType.CLUSTER
    name = CLUSTER_NAME if is_cluster else resource.resource_name
    if context.access.authorize(operation, resource_type, name):
        return None
    return refusal(context.access, operation, resource_type, name)


def authorized_operations(context: RequestContext, resource_type: ResourceType, name: str) -> i32:
    return i32(context.access.operations(resource_type, name))


def cluster_operations(context: RequestContext, *, asked: bool) -> i32:
    if not asked:
        return NOT_ASKED
    if not context.access.authorize(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return i32(0)
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


def refusal(
    access: Access, operation: Operation, resource_type: ResourceType, name: str
) -> ApiError:
    what = (
        "the cluster"
        if resource_type is ResourceType.CLUSTER
        else (f"{resource_type.name.lower()} {name!r}")
    )
    return ApiError(
        FAILURES[resource_type], f"{access.principal} has no {operation.name} access to {what}"
    )


def require_authorizer(broker: Broker) -> None:
    if broker.authorizer is None:
        raise ApiError(
            ErrorCode.security_disabled,
            "No Authorizer is configured. Set authorizer.class.name on every node.",
        )


def may_act_as_node(broker: Broker, session: Session) -> bool:
    """Without an authorizer: super users if the listener authenticates, otherwise everyone."""
    if broker.authorizer is None:
        return session.may_act_as_node
    return access_of(broker, session).authorize(
        Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    )


def may_abort_transactions(broker: Broker, session: Session, api_key: int) -> bool:
    """An administrator may write transaction markers, to abort hanging transactions."""
    return (
        api_key == _WRITE_TXN_MARKERS_KEY
        and broker.authorizer is not None
        and access_of(broker, session).authorize(
            Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME
        )
    )


def not_a_node(session: Session) -> ApiError:
    return ApiError(
        ErrorCode.cluster_authorization_failed,
        f"{session.principal} may not act as a node; super.users says who may",
    )
