"""A new leader has everything that was committed before."""

from typing import TYPE_CHECKING

from tests.raft.checkers.committed_prefix import CommittedPrefix
from tests.raft.violation import Violation

from ottla.raft.ready import Ready
from ottla.raft.states import Role

if TYPE_CHECKING:
    from tests.raft.replica import Replica


class LeaderCompleteness:
    def __init__(self, committed: CommittedPrefix) -> None:
        self._committed = committed

    def check(self, replica: "Replica", ready: Ready) -> None:
        change = ready.role_change
        if change is None or change.role is not Role.LEADER:
            return
        end_offset, log = self._committed.end_offset, replica.log
        if end_offset <= log.start_offset:
            return
        if end_offset > log.end_offset or (
            log.batch_with(end_offset - 1).chain != self._committed.chain
        ):
            raise Violation(
                f"{replica} leads epoch {change.epoch} without what is committed to {end_offset}"
            )
