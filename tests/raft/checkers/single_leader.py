"""At most one node leads an epoch, however often it restarts."""

from typing import TYPE_CHECKING

from tests.raft.violation import Violation

from ottla.raft.ready import Ready
from ottla.raft.states import Role

if TYPE_CHECKING:
    from tests.raft.replica import Replica


class SingleLeader:
    def __init__(self) -> None:
        self._leaders: dict[int, tuple[int, int]] = {}  # By epoch: the node and its life.

    def check(self, replica: "Replica", ready: Ready) -> None:
        change = ready.role_change
        if change is not None and change.role is Role.LEADER:
            leader = (replica.key.id, replica.life)
            if self._leaders.setdefault(change.epoch, leader) != leader:
                raise Violation(
                    f"epoch {change.epoch} has two leaders: {self._leaders[change.epoch][0]}"
                    f" and {replica}"
                )
