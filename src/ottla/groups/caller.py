"""Who sent a request, and in which version."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    api_version: int  # As the client sent it; the request itself is of the newest version.
    client_id: str
    client_host: str
