"""The other replicas of a partition, as its leader knows them in one leader epoch.

    in sync   in the set that the controller has committed: the high watermark waits for them
    joining   in a change of that set which is under way: it may be committed before this broker
              hears of it, so the high watermark waits for them as well
    near      not in the set, but at the end of the log a moment ago: the high watermark waits, or
              they could never reach it while producers write
    behind    all others: nobody waits for them

A follower's fetch offset says that it has everything before, as safely as the flush policy asks.
In a new epoch nothing is known of any follower until it fetches.

Pure: time comes in, and what goes out is a change of the in-sync set to be proposed to the
controller, one at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode

UNKNOWN_OFFSET: Final = -1
PROPOSE_AGAIN_MS: Final = 100.0  # After the controller has refused a change.

_NEVER: Final = float("-inf")

# Whether a broker, by its id and the epoch that it fetches with, may be in sync: it is registered
# with that epoch, alive and not about to stop.
IsEligible = Callable[[int, int], bool]


class FollowerFetch(NamedTuple):
    """What a follower says of itself when it fetches."""

    replica_id: int
    broker_epoch: int  # -1: unknown.
    fetch_offset: int
    log_start_offset: int


class Follower:
    __slots__ = (
        "_end_offset_then",
        "_fetched_at_ms",
        "broker_epoch",
        "caught_up_at_ms",
        "fetch_offset",
        "is_near",
        "log_start_offset",
        "replica_id",
    )

    def __init__(self, replica_id: int, caught_up_at_ms: float) -> None:
        self.replica_id = replica_id
        self.broker_epoch = -1
        self.fetch_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.caught_up_at_ms = caught_up_at_ms  # When it last had all that the leader had.
        self.is_near = False
        self._fetched_at_ms = _NEVER
        self._end_offset_then = UNKNOWN_OFFSET  # Of the leader, at the fetch before.

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
    """An in-sync set that is proposed to the controller, in the replicas' order."""

    isr: tuple[int, ...]
    partition_epoch: int  # Of the state that it would change.


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
        """`epoch_start_offset` is where the log ended when this broker became the leader."""
        self.replicas: tuple[int, ...] = ()
        self.established_count = 1  # Of the replicas, without those that are being added.
        self.isr: tuple[int, ...] = ()  # What the controller has committed, with the leader.
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
        """The controller's word; it ends a change that is under way. False if it is not new."""
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
        """Why the controller has committed this in-sync set, as far as is known here."""
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
        """Note how far a follower is; True when there is a new change to propose.

        One that is in sync has everything before the high watermark; if not, its disk lost it.
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
        """It does not fetch for now, so it is not taken in before it does."""
        follower = self._followers.get(replica_id)
        if follower is not None:
            follower.is_near = False

    def committed_offset(self, own_offset: int, min_insync_replicas: int) -> int:
        """Up to here everyone who counts has everything; UNKNOWN_OFFSET if too few are in sync.

        That the high watermark stands still then is what makes a replica that was in sync last an
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
        """What is before it is deleted on every replica that is alive."""
        followers = self._followers.values()
        alive = (each for each in followers if self._is_eligible(each.replica_id, -1))
        return min([own_log_start_offset, *(one.log_start_offset for one in alive)])

    def maybe_shrink(self, end_offset: int, now_ms: float) -> bool:
        """From time to time: True when there is a change to propose without those that are late."""
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
        """True when there is a change to propose with those that have caught up.

        To be asked when a follower may count that did not before, and when a change is over: one
        that has nothing to fetch does not say again how far it is.
        """
        near = {one for one in self if one.is_near and self._may_join(one, high_watermark)}
        return bool(near) and self._maybe_add(near, now_ms)

    def on_refused(self, change: IsrChange, now_ms: float) -> None:
        """The controller has said that a change was not made and will not be."""
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
        """It has lost what it had, and it must not lead without that."""
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
