"""`--command-config` and what it says, with errors that a command can show."""

import os
from pathlib import Path
from typing import Any

from ottla.cli.errors import UsageError
from ottla.cli.profiles.stored import login_at
from ottla.client.command_config import COMMAND_CONFIG_VARIABLE, CommandConfigError
from ottla.client.command_config import read_command_config as read


def read_command_config(path: Path) -> dict[str, Any]:
    try:
        return read(path)
    except CommandConfigError as error:
        raise UsageError(f"--command-config {error}") from None


def login_of(server: str, command_config: Path | None) -> dict[str, Any]:
    """How to connect and log in: as --command-config says, or the profile in use."""
    return login_at(server) if command_config is None else read_command_config(command_config)


def hand_to_spark(path: Path | None) -> None:
    """The processes that Spark starts find it in their environment."""
    if path is not None:
        read_command_config(path)  # What is wrong is told at once.
        os.environ[COMMAND_CONFIG_VARIABLE] = str(path.absolute())
