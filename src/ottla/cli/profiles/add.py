"""`ottla profile add`: give a cluster a name."""

from typing import Annotated

from cyclopts import Parameter

from ottla.cli.assignments import parse_assignments
from ottla.cli.output import print_line
from ottla.cli.profiles.stored import stored_profiles
from ottla.client.profiles import save_profiles


def add(
    name: str,
    /,
    *,
    bootstrap_server: Annotated[str, Parameter(name=("--bootstrap-server", "-b"))],
    set_: Annotated[list[str] | None, Parameter(name="--set")] = None,
) -> None:
    """Give a cluster a name; the first one is used at once.

    Args:
        name: What to call it; a profile of this name is replaced.
        bootstrap_server: Broker to connect to first, as HOST:PORT; more separated by commas.
        set_: A setting of clients, such as security.protocol=SASL_SSL; may be repeated.
    """
    current, profiles = stored_profiles()
    settings = dict(parse_assignments("--set", set_ or []))
    profiles[name] = {"bootstrap.servers": bootstrap_server, **settings}
    save_profiles(current or name, profiles)
    print_line(f"added profile {name}")
