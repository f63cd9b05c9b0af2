"""The guarantees of the consensus, one file each."""

from typing import TYPE_CHECKING, Protocol

from tests.raft.checkers.committed_prefix import CommittedPrefix
from tests.raft.checkers.leader_completeness import LeaderCompleteness
from tests.raft.checkers.log_matching import LogMatching
from tests.raft.checkers.monotonic_high_watermark import MonotonicHighWatermark
from tests.raft.checkers.one_vote import OneVote
from tests.raft.checkers.single_leader import SingleLeader

from ottla.raft.ready import Ready

if TYPE_CHECKING:
    from tests.raft.replica import Replica


class Checker(Protocol):
    def check(self, replica: "Replica", ready: Ready) -> None:
        """Called after the replica has acted on a Ready. Raises Violation."""


def all_checkers() -> list[Checker]:
    committed = CommittedPrefix()
    return [
        SingleLeader(),
        OneVote(),
        LogMatching(),
        committed,
        LeaderCompleteness(committed),
        MonotonicHighWatermark(),
    ]
