"""`ottla quotas set`: how much a user, a client id or an address may use."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from cyclopts import Parameter
from kio.schema.alter_client_quotas.v1.request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kio.static.primitive import f64

from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_line
from ottla.cli.quotas.entity import NO_ENTITY, EntityOptions, entity_text
from ottla.security.quotas import CLIENT_KEYS, CONNECTION_CREATION_RATE, Entity

_KEYS: Final = (*CLIENT_KEYS, CONNECTION_CREATION_RATE)


def set_quotas(
    quotas: Annotated[list[str], Parameter(name="quota")],
    /,
    *,
    whom: EntityOptions = NO_ENTITY,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Set quotas. They take effect at once, on every broker.

    Args:
        quotas: Quotas as key=value. For users and client ids: producer_byte_rate and
            consumer_byte_rate in bytes per second, request_percentage of a broker's time,
            controller_mutation_rate in partitions created or deleted per second. For addresses:
            connection_creation_rate in connections per second.
    """
    entity = whom.entity()
    values = dict(map(_parsed, quotas))
    alter_quotas(connection, entity, values)
    for key, value in values.items():
        print_line(f"{entity_text(entity)}: {key} is {value:.15g}")


def alter_quotas(
    connection: Connection, entity: Entity, values: Mapping[str, float | None]
) -> None:
    entry = quota_entry(entity, values)
    request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
    with bootstrap_broker(connection) as broker:
        (result,) = broker.call(request).entries
    check(result.error_code, entity_text(entity), result.error_message)


def quota_entry(
    entity: Iterable[tuple[str, str | None]], values: Mapping[str, float | None]
) -> EntryData:
    """A key without a value is removed."""
    return EntryData(
        entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        ops=tuple(
            OpData(key=key, value=f64(value or 0.0), remove=value is None)
            for key, value in values.items()
        ),
    )


def _parsed(text: str) -> tuple[str, float]:
    key, _, value = text.partition("=")
    if key not in _KEYS:
        raise UsageError(f"there is no quota {key!r}; these are: {', '.join(_KEYS)}")
    try:
        return key, float(value)
    except ValueError:
        raise UsageError(f"{text!r} is not of the form {key}=number") from None
