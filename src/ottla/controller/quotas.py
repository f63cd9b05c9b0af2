"""AlterClientQuotas (KIP-546): the quotas of users, client ids and addresses."""

import ipaddress
import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, OpData
from kio.schema.alter_client_quotas.v1.request import EntryData as Alteration
from kio.schema.alter_client_quotas.v1.response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)

from ottla.controller.image import MetadataImage, quota_record
from ottla.controller.records import ClientQuotaRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.quotas import (
    CLIENT_ID,
    CLIENT_KEYS,
    CONNECTION_CREATION_RATE,
    INTEGER_LIMITS,
    IP,
    USER,
    Entity,
    entity_of,
)

NAME_CHARACTERS_MAX: Final = 255
ENTITIES_MAX: Final = 10_000


class QuotaControl:
    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def alter_client_quotas(
        self, request: AlterClientQuotasRequest
    ) -> Result[AlterClientQuotasResponse]:
        """The changes of one entity are all or nothing."""
        times = Counter(_named(entry) for entry in request.entries)
        records: list[ClientQuotaRecord] = []
        results = []
        for entry in request.entries:
            try:
                if times[_named(entry)] > 1:
                    raise _invalid("the same entity is altered more than once")
                records += self._records(entry)
            except ApiError as error:
                results.append(result(entry, error))
            else:
                results.append(result(entry))
        response = AlterClientQuotasResponse(throttle_time=NO_THROTTLE, entries=tuple(results))
        if request.validate_only:
            return Result(response)
        return Result(response, tuple(records), cause="quotas were changed")

    def _records(self, entry: Alteration) -> list[ClientQuotaRecord]:
        entity = _entity(entry)
        keys = _keys(entity)
        present = self._image.client_quotas.get(entity, {})
        if not present and len(self._image.client_quotas) >= ENTITIES_MAX:
            raise ApiError(
                ErrorCode.policy_violation, f"there are quotas of {ENTITIES_MAX} entities already"
            )
        repeated = [key for key, count in Counter(op.key for op in entry.ops).items() if count > 1]
        if repeated:
            raise _invalid(f"{repeated[0]} is altered more than once")
        changes = [(op.key, None if op.remove else _bound(op, keys)) for op in entry.ops]
        return [
            quota_record(entity, key, bound) for key, bound in changes if bound != present.get(key)
        ]


def result(entry: Alteration, error: ApiError | None = None) -> EntryData:
    return EntryData(
        error_code=ErrorCode.none if error is None else error.code,
        error_message=None if error is None else error.message,
        entity=tuple(
            EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in entry.entity
        ),
    )


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)


def _named(entry: Alteration) -> Entity:
    return entity_of((part.entity_type, part.entity_name) for part in entry.entity)


def _entity(entry: Alteration) -> Entity:
    entity = _named(entry)
    kinds = [kind for kind, _ in entity]
    if not kinds:
        raise _invalid("a quota is of a user, a client id or an address; none is named")
    if len(set(kinds)) < len(kinds):
        raise _invalid("an entity names the same type twice")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"{kind!r} is not {USER}, {CLIENT_ID} or {IP}")
        if name is not None and not 0 < len(name) <= NAME_CHARACTERS_MAX:
            raise _invalid(f"a name has from 1 to {NAME_CHARACTERS_MAX} characters")
    if IP not in kinds:
        return entity
    if len(kinds) > 1:
        raise _invalid("an address is not combined with a user or a client id")
    return ((IP, _address(entity[0][1])),)


def _address(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        raise _invalid(f"{name!r} is not an IP address") from None


def _keys(entity: Entity) -> Sequence[str]:
    return (CONNECTION_CREATION_RATE,) if entity[0][0] == IP else CLIENT_KEYS


def _bound(op: OpData, keys: Sequence[str]) -> float:
    key, bound = op.key, float(op.value)
    if key not in keys:
        raise _invalid(f"{key!r} is no quota of this entity; these are: {', '.join(keys)}")
    if not bound > 0 or math.isinf(bound):
        raise _invalid(f"{key} must be greater than 0")
    limit = INTEGER_LIMITS.get(key)
    if limit is not None and (bound > limit or abs(bound % 1.0) > 1e-6):
        raise _invalid(f"{key} must be a whole number of at most {limit}")
    return bound
