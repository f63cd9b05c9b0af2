"""`ottla users remove`: nobody logs in by that name any more."""

from concurrent.futures import Future
from typing import Any, cast

from confluent_kafka.admin import UserScramCredentialAlteration, UserScramCredentialDeletion

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_line


def remove(name: str, /, *, connection: Connection = DEFAULT_CONNECTION) -> None:
    """Remove a user. Open connections stay open.

    Args:
        name: Name of the user.
    """
    admin = connection.admin()
    described = cast("dict[str, Future[Any]]", admin.describe_user_scram_credentials([name]))
    infos = connection.result(described[name], name).scram_credential_infos
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialDeletion(name, info.mechanism) for info in infos
    ]
    for gone in admin.alter_user_scram_credentials(changes).values():
        connection.result(gone, name)
    print_line(f"removed user {name}")
