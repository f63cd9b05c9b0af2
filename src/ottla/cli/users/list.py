"""`ottla users list`: who can log in, and how."""

from concurrent.futures import Future
from typing import Any, cast

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson
from ottla.security.scram import ScramMechanism


def list_users(*, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False) -> None:
    """List the users and the mechanisms that they can log in with."""
    admin = connection.admin()
    described = connection.result(cast("Future[Any]", admin.describe_user_scram_credentials()))
    rows: list[dict[str, Any]] = [
        {
            "user": name,
            "mechanism": ScramMechanism(int(info.mechanism.value)).sasl_name,
            "iterations": info.iterations,
        }
        for name, user in sorted(described.items())
        for info in user.scram_credential_infos
    ]
    print_listing(("user", "mechanism", "iterations"), rows, as_json=as_json)
