"""`ottla profile use`: choose the cluster that commands and clients talk to."""

from ottla.cli.output import print_line
from ottla.cli.profiles.stored import stored_profiles, validate_known
from ottla.client.profiles import save_profiles


def use(name: str, /) -> None:
    """Make this the cluster that commands talk to by default.

    Args:
        name: Name of the profile.
    """
    _, profiles = stored_profiles()
    validate_known(name, profiles)
    save_profiles(name, profiles)
    print_line(f"using profile {name}")
