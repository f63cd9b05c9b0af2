"""Divides the file descriptors of this process among its users."""

import resource
from typing import NamedTuple

OTHERS_COUNT = 96  # Threads that read and write checkpoints, indexes and the like.
SHARE_MIN = 16


class DescriptorShares(NamedTuple):
    """Keeps many connections from preventing a log from opening its files."""

    log_files: int
    connections: int


def raise_descriptor_limit() -> None:
    """Raise the limit as far as allowed; the default is often only 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptor_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 2**31 - 1


def share_descriptors(limit: int, *, log_files: int, connections: int) -> DescriptorShares:
    """The configured numbers, as far as the limit allows: files up to half of it."""
    free = limit - OTHERS_COUNT
    log_files = max(SHARE_MIN, min(log_files, free // 2))
    return DescriptorShares(log_files, max(SHARE_MIN, min(connections, free - log_files)))
