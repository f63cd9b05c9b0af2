"""`ottla quotas list`: what is set for whom."""

from typing import Final, NamedTuple

from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest
from kio.static.primitive import i8

from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_json, print_rows
from ottla.cli.parameters import AsJson
from ottla.cli.quotas.entity import NO_ENTITY, EntityOptions, entity_text
from ottla.security.quotas import Entity, entity_of

_EXACT: Final = i8(0)
_DEFAULT: Final = i8(1)


class SetQuota(NamedTuple):
    entity: Entity
    key: str
    value: float


def list_quotas(
    *,
    whom: EntityOptions = NO_ENTITY,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """List all quotas, or those that name a user, a client id or an address."""
    entity = whom.entity(required=False)
    quotas = find_quotas(connection, entity)
    if as_json:
        rows = [
            {"entity": dict(each.entity), "quota": each.key, "value": each.value} for each in quotas
        ]
        print_json(rows)
        return
    print_rows(
        ("entity", "quota", "value"),
        [
            {"entity": entity_text(each.entity), "quota": each.key, "value": f"{each.value:.15g}"}
            for each in quotas
        ],
    )


def find_quotas(connection: Connection, entity: Entity, *, strict: bool = False) -> list[SetQuota]:
    """Those of entities that have these parts; with `strict`, no others."""
    request = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(
                entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name
            )
            for kind, name in entity
        ),
        strict=strict,
    )
    with bootstrap_broker(connection) as broker:
        response = broker.call(request)
    check(response.error_code, "quotas", response.error_message)
    return sorted(
        (
            SetQuota(
                entity_of((part.entity_type, part.entity_name) for part in entry.entity),
                value.key,
                float(value.value),
            )
            for entry in response.entries or ()
            for value in entry.values
        ),
        key=lambda quota: (entity_text(quota.entity), quota.key),
    )
