"""Who sent a request, and in which version."""

from collections.abc import Callable

from ottla.protocol.lazy_dataclass import dataclass


def _everything(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Caller:
    api_version: int  # As the client sent it; the request itself is of the newest version.
    client_id: str
    client_host: str
    # Topics that a regular expression stands for are those that whoever asks may describe.
    may_describe: Callable[[str], bool] = _everything
