"""Named clusters, in a file that only its owner can read.

    {"current": "staging", "profiles": {"staging": {"bootstrap.servers": "..."}}}

A profile has librdkafka settings: the bootstrap servers and the login. OTTLA_PROFILE overrides the
current profile.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

Profile = dict[str, Any]

SECRETS: Final = ("sasl.password", "ssl.key.password", "ssl.key.pem")


class ProfileError(Exception):
    """The file cannot be read, or lacks that profile."""


class ExposedProfilesError(ProfileError):
    """The file contains secrets and other users can read it."""


def profiles_path() -> Path:
    directory = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(directory) / "ottla" / "profiles.json"


def load_profiles() -> tuple[str, dict[str, Profile]]:
    """The name of the current profile, which may be empty, and all profiles."""
    path = profiles_path()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        current, profiles = str(content.get("current", "")), dict(content["profiles"])
        has_secrets = any(name in SECRETS for profile in profiles.values() for name in profile)
        if has_secrets and path.stat().st_mode & stat.S_IROTH:
            raise ExposedProfilesError(
                f"{path} has a secret and others can read it; run `chmod o-rwx {path}`"
            )
        return current, profiles
    except FileNotFoundError:
        return "", {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProfileError(f"cannot read the profiles in {path}: {error}") from None


def save_profiles(current: str, profiles: dict[str, Profile]) -> None:
    """The file may hold passwords, so only its owner may read it."""
    path = profiles_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump({"current": current, "profiles": profiles}, file, indent=2)
        file.write("\n")
    temporary.replace(path)


def profile_for(server: str) -> Profile:
    """The current profile, if it is for these servers or none are given; empty if unreadable.

    Raises ExposedProfilesError if other users can read it.
    """
    try:
        profile = current_profile()
    except ExposedProfilesError:
        raise
    except ProfileError:
        return {}
    return profile if not server or profile.get("bootstrap.servers") == server else {}


def current_profile() -> Profile:
    """The current profile; empty if there is none."""
    current, profiles = load_profiles()
    name = os.environ.get("OTTLA_PROFILE", current)
    if not name:
        return {}
    if name not in profiles:
        raise ProfileError(f"there is no profile {name!r}; `ottla profile list` shows them")
    return profiles[name]
