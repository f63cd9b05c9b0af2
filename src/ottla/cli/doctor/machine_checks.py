"""This machine: its clock, and what it allows a broker."""

import ctypes
import resource
from collections.abc import Iterator
from typing import Final

from ottla.cli.doctor.finding import Finding, warning

FILES_WANTED: Final = 65_536
_UNSYNCHRONISED: Final = 5  # TIME_ERROR of ntp_gettime(3).
_NTPTIMEVAL_BYTES: Final = 256  # More than it has.


def check_machine() -> Iterator[Finding]:
    yield from check_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    if not clock_is_synchronised():
        yield warning(
            "clock",
            "the clock of this machine is not synchronised, so timestamps, retention by time and"
            " delays may be wrong",
            "run a time service, such as `systemctl enable --now systemd-timesyncd`",
        )


def check_files(limit: int) -> Iterator[Finding]:
    """`limit` is the hard one; a broker raises the soft one by itself."""
    if limit != resource.RLIM_INFINITY and limit < FILES_WANTED:
        yield warning(
            "limits",
            f"a process may open {limit} files here; a broker needs three for each log segment and"
            " one for each connection",
            "set LimitNOFILE=1048576 in the unit (`ottla service install` does), or raise"
            " `ulimit -Hn`",
        )


def clock_is_synchronised() -> bool:
    """As the kernel has been told; True where that cannot be found out."""
    try:
        ask = ctypes.CDLL(None).ntp_gettime
    except (OSError, AttributeError):
        return True
    return bool(ask(ctypes.create_string_buffer(_NTPTIMEVAL_BYTES)) != _UNSYNCHRONISED)
