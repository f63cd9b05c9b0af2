"""The profiles of this user, with errors that a command can show."""

from ottla.cli.errors import CommandError
from ottla.client.profiles import Profile, ProfileError, load_profiles, profile_for


def stored_profiles() -> tuple[str, dict[str, Profile]]:
    """The name of the current one, which may be empty, and all of them."""
    try:
        return load_profiles()
    except ProfileError as error:
        raise CommandError(str(error)) from None


def login_at(server: str) -> Profile:
    """The profile in use, if it is of these servers or none are named."""
    try:
        return profile_for(server)
    except ProfileError as error:
        raise CommandError(str(error)) from None


def validate_known(name: str, profiles: dict[str, Profile]) -> None:
    if name not in profiles:
        raise CommandError(f"there is no profile {name}; `ottla profile list` shows them")
