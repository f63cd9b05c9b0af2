"""Bugs that the checkers must find: the core or its driver with one rule broken."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.raft.replica import Replica

from ottla.raft import elections
from ottla.raft.following import Following
from ottla.raft.leadership import Leadership
from ottla.raft.quorum import Quorum
from ottla.raft.ready import Ready
from ottla.raft.states import Leader, Prospective, Unattached
from ottla.raft.voter_changes import VoterChanges
from ottla.raft.voters import ReplicaKey

Patch = tuple[Any, str, Callable[..., Any]]


@dataclass(frozen=True)
class Bug:
    name: str
    patches: tuple[Patch, ...] = ()
    replica_type: type[Replica] = Replica
    faults: Mapping[str, Any] = field(default_factory=dict)  # A seed that shows it, if it is rare.


def _grants_any_vote(state: object, _: object, *, up_to_date: bool) -> bool:
    return up_to_date and isinstance(state, Prospective | Unattached)


def _forget_earlier_vote(quorum: Quorum, candidate: ReplicaKey) -> None:
    quorum._become(replace(quorum.state, voted=candidate))


class _SavesVoteLater(Replica):
    """The response is sent before the vote is on disk."""

    def _save_quorum_state(self, ready: Ready) -> None:
        if ready.quorum_state is not None:
            self._later(50, lambda: Replica._save_quorum_state(self, ready))


class _FetchesBeforeSync(Replica):
    """The core hears of a sync that has not happened."""

    def _sync_later(self) -> None:
        super()._sync_later()
        assert self.node is not None
        self.node.on_synced(self.log.end_offset)
        self._act(self.node.take_ready())


def _truncates_everything(following: Following, _: object) -> None:
    following.truncate_to(following._quorum.log.start_offset)


def _counts_observers(leadership: Leadership, state: Leader) -> int:
    offsets = [progress.fetch_offset for progress in state.progress.values()]
    offsets.append(leadership._quorum.synced_offset)
    majority = leadership._quorum.voters.latest.majority
    return sorted(offsets, reverse=True)[majority - 1] if len(offsets) >= majority else -1


# Leaders that crash as soon as they commit, and followers that fetch one batch at a time.
_FIGURE_8 = {
    "voters": 3,
    "observers": 0,
    "fetch_bytes_max": 1,
    "voter_changes": False,
    "snapshots": False,
    "short_reign": 0.8,
    "interval_ms": 250,
    "work_ms": 25,
    "drop": 0.1,
    "sync_ms_max": 30,
}

BUGS = (
    Bug(
        "votes twice in an epoch",
        (
            (elections, "grants_vote", _grants_any_vote),
            (Quorum, "vote_for", _forget_earlier_vote),
        ),
    ),
    Bug("sends a vote before it is synced", replica_type=_SavesVoteLater),
    Bug("fetches before what it has is synced", replica_type=_FetchesBeforeSync),
    Bug(
        "commits an older epoch by counting",
        ((Leadership, "is_of_own_epoch", lambda *_: True),),
        faults=_FIGURE_8,
    ),
    Bug("truncates below the high watermark", ((Following, "_truncate", _truncates_everything),)),
    Bug("counts an observer", ((Leadership, "majority_offset", _counts_observers),)),
    Bug(
        "changes voters while a change is under way",
        ((VoterChanges, "_validate_ready", lambda *_: None),),
        faults={"voter_changes": True, "observers": 2},
    ),
)
