"""DescribeClientQuotas (48): v0-v1.

Lists the quotas of the entities that match a filter (KIP-546). Without `strict`, entities with more
types than the filter names match as well.

v1  flexible
"""

from typing import Final

from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest
from kio.schema.describe_client_quotas.v1.response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kio.static.primitive import f64

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation
from ottla.security.quotas import CLIENT_ID, IP, USER, Entity

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    require_cluster(context, Operation.DESCRIBE_CONFIGS)
    _validate(request.components)
    return DescribeClientQuotasResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        entries=tuple(
            _entry(entity, bounds)
            for entity, bounds in broker.image.client_quotas.items()
            if _matches(dict(entity), request)
        ),
    )


def _validate(components: tuple[ComponentData, ...]) -> None:
    kinds = [component.entity_type for component in components]
    for component in components:
        kind = component.entity_type
        if not kind or kinds.count(kind) > 1:
            raise ApiError(ErrorCode.invalid_request, f"the entity type {kind!r} comes twice")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.unsupported_version, f"there is no entity type {kind!r}")
        if component.match_type not in (_EXACT, _DEFAULT, _ANY):
            raise ApiError(
                ErrorCode.invalid_request, f"there is no match type {component.match_type}"
            )
        if (component.match is None) == (component.match_type == _EXACT):
            raise ApiError(ErrorCode.invalid_request, "only an exact match has a name")
    if IP in kinds and len(kinds) > 1:
        raise ApiError(
            ErrorCode.invalid_request, "an address is not combined with a user or a client id"
        )


def _matches(names: dict[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    if request.strict and len(names) != len(request.components):
        return False
    return all(
        component.entity_type in names
        and (component.match_type == _ANY or names[component.entity_type] == component.match)
        for component in request.components
    )


def _entry(entity: Entity, bounds: dict[str, float]) -> EntryData:
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        values=tuple(ValueData(key=key, value=f64(bound)) for key, bound in bounds.items()),
    )
