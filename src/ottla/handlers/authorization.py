"""Who may do what, as handlers ask it: `context.access` for cold APIs, `access_of` for hot ones."""

from collections.abc import Mapping
from typing import Final

from ottla.handlers.broker import Broker
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


def access_of(broker: Broker, session: Session) -> Access:
    authorizer = broker.authorizer
    if authorizer is None:
        return UNLIMITED
    access = session.access
    if access is None:
        access = session.access = authorizer.access(session.principal, session.peer_address)
    return access


def require(
    access: Access, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME
) -> None:
    """ApiError if it is not allowed."""
    if not access.authorize(operation, resource_type, name):
        raise refusal(access, operation, resource_type, name)


def require_cluster(access: Access, operation: Operation) -> None:
    require(access, operation, ResourceType.CLUSTER)


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
    """Without an authorizer, super users of listeners that authenticate may, and all on others."""
    if broker.authorizer is None:
        return session.may_act_as_node
    return access_of(broker, session).authorize(
        Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    )


def not_a_node(session: Session) -> ApiError:
    return ApiError(
        ErrorCode.cluster_authorization_failed,
        f"{session.principal} may not act as a node; super.users says who may",
    )
