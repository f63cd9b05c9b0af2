"""A file with the first users of a cluster: their SCRAM credentials.

    [{"name": "admin", "mechanism": "SCRAM-SHA-512", "iterations": 8192, "salt": "...", ...}]

Salt and keys are base64. Anyone who can read the file can try passwords, so others must not.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from ottla.network.tls import TlsError, validate_private
from ottla.security.scram import SCRAM_MECHANISMS, ScramCredential, ScramMechanism

Users = Mapping[tuple[str, int], ScramCredential]  # By name and mechanism.


class UsersFileError(Exception):
    """The message is for the person who started the node."""


def read_users(path: str) -> Users:
    try:
        validate_private(path)
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return dict(map(_user, content))
    except TlsError as error:
        raise UsersFileError(str(error)) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsersFileError(f"cannot read the users in {path}: {type(error).__name__}") from None


def _user(entry: Mapping[str, str]) -> tuple[tuple[str, int], ScramCredential]:
    def data(name: str) -> bytes:
        return base64.b64decode(entry[name], validate=True)

    mechanism = SCRAM_MECHANISMS[entry["mechanism"]]
    credential = ScramCredential(
        data("salt"), data("stored_key"), data("server_key"), int(entry["iterations"])
    )
    return (entry["name"], int(mechanism)), credential


def format_users(users: Users) -> str:
    def text(data: bytes) -> str:
        return base64.b64encode(data).decode()

    entries = [
        {
            "name": name,
            "mechanism": ScramMechanism(mechanism).sasl_name,
            "iterations": credential.iterations,
            "salt": text(credential.salt),
            "stored_key": text(credential.stored_key),
            "server_key": text(credential.server_key),
        }
        for (name, mechanism), credential in users.items()
    ]
    return json.dumps(entries, indent=2) + "\n"
