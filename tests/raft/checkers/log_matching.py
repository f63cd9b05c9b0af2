"""Two logs with a batch of the same offset and epoch are equal up to it."""

from typing import TYPE_CHECKING

from tests.raft.violation import Violation

from ottla.raft.ready import Ready
from ottla.records.batch import read_header

if TYPE_CHECKING:
    from tests.raft.replica import Replica


class LogMatching:
    def __init__(self) -> None:
        self._chains: dict[tuple[int, int], int] = {}  # Keyed by end offset and epoch.

    def check(self, replica: "Replica", ready: Ready) -> None:
        for data in ready.appends:
            batch = replica.log.batch_with(read_header(data).base_offset)
            end = (batch.end_offset, batch.epoch)
            if self._chains.setdefault(end, batch.chain) != batch.chain:
                raise Violation(f"the log of {replica} differs from another's before {end}")
