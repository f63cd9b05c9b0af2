"""`ottla profile list`: the clusters that have names."""

from typing import Final

from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson
from ottla.cli.profiles.stored import stored_profiles

COLUMNS: Final = ("profile", "bootstrap server", "current")


def list_profiles(*, as_json: AsJson = False) -> None:
    """List the profiles, without what is secret in them."""
    current, profiles = stored_profiles()
    rows = [
        {
            "profile": name,
            "bootstrap server": profile.get("bootstrap.servers", ""),
            "current": "yes" if name == current else "",
        }
        for name, profile in sorted(profiles.items())
    ]
    print_listing(COLUMNS, rows, as_json=as_json)
