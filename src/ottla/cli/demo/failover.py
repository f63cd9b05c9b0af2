"""`ottla demo`: three nodes under load, one of which is killed; nothing may be lost."""

from ottla.cli.errors import UsageError
from ottla.cli.parameters import AsJson

SECONDS_MIN = 3.0
RATE_MAX = 100_000


def failover(
    *, seconds: float = 20, rate: int = 5_000, no_live: bool = False, as_json: AsJson = False
) -> int:
    """Start a cluster of three nodes, write to it, kill the leader of a partition, and count.

    Everything runs on this machine, in a temporary directory that is removed at the end.
    The exit code is 0 if every acknowledged record was read, once and in order.

    Args:
        seconds: Seconds to write records.
        rate: Records per second.
        no_live: Print a line per second even on a terminal.
        as_json: Print only the result, as JSON.
    """
    if seconds < SECONDS_MIN:
        raise UsageError(f"--seconds {seconds:g} is too short: it takes {SECONDS_MIN:g} at least")
    if not 1 <= rate <= RATE_MAX:
        raise UsageError(f"--rate {rate} is not from 1 to {RATE_MAX}")
    from ottla.cli.demo.failover_run import run_failover

    return run_failover(seconds, rate, is_live=not no_live, as_json=as_json)
