"""The sender of a request, and the request's version."""

from collections.abc import Callable

from ottla.protocol.lazy_dataclass import dataclass


def _everything(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Caller:
    api_version: int  # As sent by the client; the request itself has the newest version.
    client_id: str
    client_host: str
    # A regular expression matches only topics that the caller may describe.
    may_describe: Callable[[str], bool] = _everything
