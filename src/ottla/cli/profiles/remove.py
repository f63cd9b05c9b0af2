"""`ottla profile remove`: forget a name."""

from ottla.cli.output import print_line
from ottla.cli.profiles.stored import stored_profiles, validate_known
from ottla.client.profiles import save_profiles


def remove(name: str, /) -> None:
    """Delete a profile; the cluster is not touched.

    Args:
        name: Name of the profile.
    """
    current, profiles = stored_profiles()
    validate_known(name, profiles)
    del profiles[name]
    save_profiles("" if current == name else current, profiles)
    print_line(f"removed profile {name}")
