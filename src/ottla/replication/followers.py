"""A partition's other replicas, as its leader sees them in one leader epoch.

    in sync   in the ISR that the controller has committed: the high watermark waits for them
    joining   in a proposed change of the ISR: it may be committed before this broker learns of it,
              so the high watermark waits for them as well
    near      not in the ISR, but at the log end a moment ago: the high watermark waits, or they
              could never reach it while producers write
    behind    all others: nothing waits for them

A follower's fetch offset says that it has everything before it, as durably as the flush policy
demands. In a new epoch nothing is known about a follower until it fetches.

Pure: time is passed in, and the output is a change of the ISR to be proposed to the controller, one
at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass

UNKNOWN_OFFSET: Final = -1
PROPOSE_AGAIN_MS: Final = 100.0  # After the controller refused a change.

_NEVER: Final = float("-inf")

# Whether a broker may be in sync, given its id and the epoch that it fetches with: it is registered
# with that epoch, alive and not about to stop.
IsEligible = Callable[[int, int], bool]


class FollowerFetch(NamedTuple):
    """What a follower reports when it fetches."""

    replica_id: int
    broker_epoch: int  # -1: unknown.
    fetch_offset: int
    log_start_offset: int


@dataclass(slots=True, eq=False)
class Follower:
    replica_id: int
    caught_up_at_ms: float  # When it last had everything the leader had.
    broker_epoch: int = -1
    fetch_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    is_near: bool = False
    _fetched_at_ms: float = _NEVER
    _end_offset_then: int = UNKNOWN_OFFSET  # The leader's, at the previous fetch.

    def on_fetch(self, fetch: FollowerFetch, end_offset: int, now_ms: float) -> None:
        if fetch.fetch_offset >= end_offset:
            self.caught_up_at_ms = now_ms
            self.is_near = True
        elif UNKNOWN_OFFSET != self._end_offset_then <= fetch.fetch_offset:
            self.caught_up_at_ms = max(self.caught_up_at_ms, self._fetched_at_ms)
            self.is_near = True
        self.broker_epoch = fetch.broker_epoch
        self.fetch_offset = fetch.fetch_offset
        self.log_start_offset = fetch.log_start_offset
        self._fetched_at_ms = now_ms
        self._end_offset_then = end_offset


class IsrChange(NamedTuple):
    """An ISR proposed to the controller, in replica order."""

    isr: tuple[int, ...]
    partition_epoch: int  # Of the state that it changes.


class Followers:
    __slots__ = (
        "_assumed",
        "_followers",
        "_is_eligible",
        "_lag_max_ms",
        "_node_id",
        "_propose_from_ms",
        "_proposed_because",
        "epoch_start_offset",
        "established_count",
        "isr",
        "partition_epoch",
        "pending",
        "replicas",
    )

    def __init__(
        self, node_id: int, epoch_start_offset: int, is_eligible: IsEligible, lag_max_ms: float
    ) -> None:
        """`epoch_start_offset` is the log end offset at which this broker became leader."""
        self.replicas: tuple[int, ...] = ()
        self.established_count = 1  # Number of replicas, without those being added.
        self.isr: tuple[int, ...] = ()  # As committed by the controller, including the leader.
        self.partition_epoch = -1
        self.pending: IsrChange | None = None
        self._node_id = node_id
        self.epoch_start_offset = epoch_start_offset
        self._is_eligible = is_eligible
        self._lag_max_ms = lag_max_ms
        self._followers: dict[int, Follower] = {}
        self._assumed: frozenset[int] = frozenset()  # In sync or joining.
        self._propose_from_ms = _NEVER
        self._proposed_because = ""

    def update(
        self,
        replicas: Sequence[int],
        isr: Sequence[int],
        partition_epoch: int,
        now_ms: float,
        *,
        adding: Sequence[int] = (),
    ) -> bool:
        """Apply the controller's decision, which ends a pending change. False if it is not new."""
        if partition_epoch <= self.partition_epoch:
            return False
        known = self._followers
        self.replicas, self.isr = tuple(replicas), tuple(isr)
        self.established_count = len(replicas) - len(adding)
        self.partition_epoch = partition_epoch
        self._followers = {
            replica: known.get(replica) or Follower(replica, now_ms if replica in isr else _NEVER)
            for replica in replicas
            if replica != self._node_id
        }
        self._set_pending(None)
        return True

    def reason_for(self, isr: Sequence[int]) -> str:
        """Why the controller committed this ISR, as far as this broker knows."""
        proposed = self.pending is not None and self.pending.isr == tuple(isr)
        return self._proposed_because if proposed else "the controller has decided it"

    def __iter__(self) -> Iterator[Follower]:
        return iter(self._followers.values())

    def get(self, replica_id: int) -> Follower:
        follower = self._followers.get(replica_id)
        if follower is None:
            raise ApiError(
                ErrorCode.unknown_leader_epoch, f"broker {replica_id} is not a replica here (yet)"
            )
        return follower

    def on_fetch(
        self, fetch: FollowerFetch, end_offset: int, high_watermark: int, now_ms: float
    ) -> bool:
        """Record a follower's position; True if there is a new change to propose.

        An in-sync follower has everything below the high watermark; otherwise its disk lost
        records.
        """
        follower = self.get(fetch.replica_id)
        if -1 != fetch.broker_epoch < follower.broker_epoch:
            raise ApiError(
                ErrorCode.not_leader_or_follower,
                f"broker {fetch.replica_id} fetched with epoch {follower.broker_epoch} before",
            )
        follower.on_fetch(fetch, end_offset, now_ms)
        if follower.replica_id in self.isr:
            return fetch.fetch_offset < high_watermark and self._exclude(follower)
        return self._may_join(follower, high_watermark) and self._maybe_add({follower}, now_ms)

    def on_absent(self, replica_id: int) -> None:
        """It is not fetching now, so it must fetch again before it can join the ISR."""
        follower = self._followers.get(replica_id)
        if follower is not None:
            follower.is_near = False

    def committed_offset(self, own_offset: int, min_insync_replicas: int) -> int:
        """Every counted replica has everything below this; UNKNOWN_OFFSET if too few are in sync.

        Because the high watermark stands still in that case, a replica that was last in sync is an
        eligible leader (KIP-966).
        """
        if len(self.isr) < min(min_insync_replicas, self.established_count):
            return UNKNOWN_OFFSET
        offset = own_offset
        for follower in self._followers.values():
            if follower.fetch_offset < offset and self._is_awaited(follower):
                offset = follower.fetch_offset
        return offset

    def low_watermark(self, own_log_start_offset: int) -> int:
        """Everything before it is deleted on every live replica."""
        followers = self._followers.values()
        alive = (each for each in followers if self._is_eligible(each.replica_id, -1))
        return min([own_log_start_offset, *(follower.log_start_offset for follower in alive)])

    def maybe_shrink(self, end_offset: int, now_ms: float) -> bool:
        """Called periodically: True if there is a change to propose that removes late followers."""
        late = set()
        for follower in self._followers.values():
            if follower.fetch_offset >= end_offset:
                follower.caught_up_at_ms = now_ms
            elif now_ms - follower.caught_up_at_ms > self._lag_max_ms:
                follower.is_near = False
                late.add(follower.replica_id)
        if self.pending is not None or not late.intersection(self.isr):
            return False
        self._propose(
            set(self.isr) - late,
            f"a follower was behind for more than {self._lag_max_ms / 1000:.0f} s",
        )
        return True

    def maybe_expand(self, high_watermark: int, now_ms: float) -> bool:
        """True if there is a change to propose that adds followers that have caught up.

        Call it when a follower becomes eligible and when a change has ended: a follower with
        nothing to fetch does not report its position again.
        """
        near = {
            follower
            for follower in self
            if follower.is_near and self._may_join(follower, high_watermark)
        }
        return bool(near) and self._maybe_add(near, now_ms)

    def on_refused(self, change: IsrChange, now_ms: float) -> None:
        """The controller answered that a change was not made and will not be."""
        if self.pending is change:
            self._set_pending(None)
            self._propose_from_ms = now_ms + PROPOSE_AGAIN_MS

    def _is_awaited(self, follower: Follower) -> bool:
        return follower.replica_id in self._assumed or (
            follower.is_near and self._is_eligible(follower.replica_id, follower.broker_epoch)
        )

    def _may_join(self, follower: Follower, high_watermark: int) -> bool:
        return (
            follower.replica_id not in self.isr
            and follower.fetch_offset >= max(high_watermark, self.epoch_start_offset)
            and self._is_eligible(follower.replica_id, follower.broker_epoch)
        )

    def _maybe_add(self, joining: set[Follower], now_ms: float) -> bool:
        if self.pending is not None or now_ms < self._propose_from_ms:
            return False
        self._propose(
            {*self.isr, *(follower.replica_id for follower in joining)},
            "a follower has caught up",
        )
        return True

    def _exclude(self, follower: Follower) -> bool:
        """It has lost records that it had, and must not lead without them."""
        follower.is_near = False
        if self.pending is not None:
            return False
        self._propose(
            set(self.isr) - {follower.replica_id}, "a follower has lost records that it had"
        )
        return True

    def _propose(self, isr: set[int], because: str) -> None:
        ordered = tuple(replica for replica in self.replicas if replica in isr)
        self._proposed_because = because
        self._set_pending(IsrChange(ordered, self.partition_epoch))

    def _set_pending(self, change: IsrChange | None) -> None:
        self.pending = change
        self._assumed = frozenset(self.isr if change is None else {*self.isr, *change.isr})
