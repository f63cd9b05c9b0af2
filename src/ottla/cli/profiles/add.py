"""`ottla profile add`: give a cluster a name."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ottla.cli.assignments import parse_assignments
from ottla.cli.command_config import read_command_config
from ottla.cli.errors import UsageError
from ottla.cli.output import print_line
from ottla.cli.profiles.stored import stored_profiles
from ottla.client.profiles import save_profiles


def add(
    name: str,
    /,
    *,
    bootstrap_server: Annotated[str | None, Parameter(name=("--bootstrap-server", "-b"))] = None,
    command_config: Path | None = None,
    set_: list[str] | None = None,
) -> None:
    """Add a named cluster; the first one becomes the current profile.

    Args:
        name: Name of the profile; replaces an existing one.
        bootstrap_server: Broker to connect to first, as HOST:PORT; separate several with commas.
        command_config: File to import client settings from, so that you type no secret.
        set_: A client setting, such as security.protocol=SASL_SSL; may be repeated.
    """
    current, profiles = stored_profiles()
    settings = {} if command_config is None else read_command_config(command_config)
    if bootstrap_server is not None:
        settings["bootstrap.servers"] = bootstrap_server
    elif "bootstrap.servers" not in settings:
        raise UsageError("--bootstrap-server is missing")
    profiles[name] = {**settings, **parse_assignments("--set", set_ or [])}
    save_profiles(current or name, profiles)
    print_line(f"added profile {name}")
