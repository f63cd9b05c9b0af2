"""`ottla quotas remove`: a limit that is no more."""

from typing import Annotated

from cyclopts import Parameter

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_line
from ottla.cli.quotas.entity import (
    ClientId,
    DefaultClientId,
    DefaultIp,
    DefaultUser,
    Ip,
    User,
    chosen_entity,
    entity_text,
)
from ottla.cli.quotas.list import find_quotas
from ottla.cli.quotas.set import alter_quotas
from ottla.security.quotas import CLIENT_ID, IP, USER


def remove(
    quotas: Annotated[list[str] | None, Parameter(name="quota")] = None,
    /,
    *,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    default_user: DefaultUser = False,
    default_client_id: DefaultClientId = False,
    default_ip: DefaultIp = False,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Remove quotas of a user, a client id or an address.

    Args:
        quotas: Keys, such as producer_byte_rate; without any, all that are set.
    """
    entity = chosen_entity(
        {USER: user, CLIENT_ID: client_id, IP: ip},
        {USER: default_user, CLIENT_ID: default_client_id, IP: default_ip},
    )
    present = [one.key for one in find_quotas(connection, entity, strict=True)]
    missing = [key for key in quotas or () if key not in present]
    if missing or not present:
        raise CommandError(f"{entity_text(entity)} has no quota {', '.join(missing)}".rstrip())
    chosen = quotas or present
    alter_quotas(connection, entity, dict.fromkeys(chosen))
    for key in chosen:
        print_line(f"{entity_text(entity)}: removed {key}")
