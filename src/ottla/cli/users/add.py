"""`ottla users add`: a user and its password."""

import getpass
import secrets
import sys
from pathlib import Path

from confluent_kafka.admin import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from confluent_kafka.admin import ScramMechanism as ClientMechanism

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_line
from ottla.cli.secret_files import replace_private, validate_private
from ottla.node.users_file import UsersFileError, format_users, read_users
from ottla.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES,
    ScramMechanism,
    new_credential,
)

MECHANISMS = (ClientMechanism.SCRAM_SHA_256, ClientMechanism.SCRAM_SHA_512)
ITERATIONS = 8_192


def add(
    name: str,
    /,
    *,
    password_file: Path | None = None,
    iterations: int = ITERATIONS,
    to_file: Path | None = None,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Add a user, or change a password. Prompts for the password.

    Args:
        name: Name of the user.
        password_file: File with the password, instead of the prompt or standard input.
        iterations: Number of hash iterations; more make guessing slower.
        to_file: The initial.users.file of a node to write to, instead of a running cluster.
    """
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise UsageError(
            f"--iterations {iterations} is not from {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        )
    password = _password(name, password_file)
    if to_file is not None:
        _add_to_file(to_file, name, password, iterations)
        print_line(
            f"user {name} is in {to_file}; copy it to every node, which reads it when it starts"
        )
        return
    admin = connection.admin()
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(
            name,
            ScramCredentialInfo(mechanism, iterations),
            password.encode(),
            secrets.token_bytes(SALT_BYTES),
        )
        for mechanism in MECHANISMS
    ]
    for future in admin.alter_user_scram_credentials(changes).values():
        connection.result(future, name)
    print_line(f"user {name} can log in with SCRAM-SHA-256, SCRAM-SHA-512, and PLAIN inside TLS")


def _add_to_file(path: Path, name: str, password: str, iterations: int) -> None:
    """Replace what the file has of the user; create a missing file."""
    try:
        users = dict(read_users(str(path))) if path.exists() else {}
        for mechanism in ScramMechanism:
            users[name, int(mechanism)] = new_credential(
                mechanism, password, secrets.token_bytes(SALT_BYTES), iterations
            )
        replace_private(path, format_users(users).encode())
    except UsersFileError as error:
        raise CommandError(str(error)) from None


def _password(name: str, file: Path | None) -> str:
    if file is None and sys.stdin.isatty():
        password = getpass.getpass(f"Password of {name}: ")
        if password != getpass.getpass("Again: "):
            raise UsageError("the two passwords differ")
    elif file is None:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        validate_private("--password-file", file)
        password = file.read_text(encoding="utf-8").rstrip("\r\n")
    if not password:
        raise UsageError("the password is empty")
    return password
