"""`ottla quotas remove`: a limit that is no more."""

from typing import Annotated

from cyclopts import Parameter

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_line
from ottla.cli.quotas.entity import NO_ENTITY, EntityOptions, entity_text
from ottla.cli.quotas.list import find_quotas
from ottla.cli.quotas.set import alter_quotas


def remove(
    quotas: Annotated[list[str] | None, Parameter(name="quota")] = None,
    /,
    *,
    whom: EntityOptions = NO_ENTITY,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Remove quotas of a user, a client id or an address.

    Args:
        quotas: Keys, such as producer_byte_rate; without any, all that are set.
    """
    entity = whom.entity()
    present = [quota.key for quota in find_quotas(connection, entity, strict=True)]
    missing = [key for key in quotas or () if key not in present]
    if missing or not present:
        raise CommandError(f"{entity_text(entity)} has no quota {', '.join(missing)}".rstrip())
    chosen = quotas or present
    alter_quotas(connection, entity, dict.fromkeys(chosen))
    for key in chosen:
        print_line(f"{entity_text(entity)}: removed {key}")
