"""Changes of one partition: its leader, in-sync replicas and eligible leaders (KIP-966).

A `PartitionChange` starts from the current partition; the caller states what is wanted; `record`
returns the record that makes the change, or None if there is nothing to change.

- A replica can lead if it is active and in sync. While none is in sync, eligible leader replicas
  can: they have everything up to the high watermark, which does not advance while the in-sync set
  is smaller than min.insync.replicas.
- A replica that leaves an in-sync set that is then too small becomes an eligible leader replica,
  unless its disk may have lost something. These are cleared once the set is large enough again.
- The last replica that has everything stays, whatever happens to it, except when its disk is lost:
  then only an unclean election gives the partition a leader.
- A replica whose log directory is full leads only if no other can.
- A reassignment is complete when all its target replicas are in sync.
"""

import enum
from collections.abc import Callable, Collection, Iterator
from dataclasses import field
from typing import Any, Final
from uuid import UUID

from kio.schema.types import BrokerId
from kio.static.primitive import i8

from ottla.controller.directories import directories_for
from ottla.controller.records import NO_LEADER, PartitionChangeRecord, PartitionRecord
from ottla.protocol.lazy_dataclass import dataclass

RECOVERED: Final = i8(0)
RECOVERING: Final = i8(1)  # Its leader was elected uncleanly and has not reported that it is ready.

Replicas = tuple[BrokerId, ...]


class Election(enum.Enum):
    PREFERRED = enum.auto()  # The first replica leads if it can; otherwise like ONLINE.
    ONLINE = enum.auto()  # The leader stays if it can; otherwise the first replica that can.
    UNCLEAN = enum.auto()  # Like ONLINE; but if none can, any active replica.


class Departure(enum.Enum):
    """The state of the disk of a broker that leaves the in-sync set."""

    INTACT = enum.auto()
    UNCLEAN = enum.auto()  # It crashed: the ends of its logs may be gone.
    LOST = enum.auto()


@dataclass(slots=True)
class PartitionChange:
    partition: PartitionRecord
    is_active: Callable[[int], bool]
    min_isr: int
    election: Election = Election.ONLINE
    has_room: Callable[[int], bool] = lambda _: True
    isr: Replicas = field(init=False)
    replicas: Replicas = field(init=False)
    removing: Replicas = field(init=False)
    adding: Replicas = field(init=False)
    recovery_state: i8 = field(init=False)
    gone: int = NO_LEADER
    departure: Departure = Departure.INTACT
    also_active: int = NO_LEADER  # As a result of this change.
    moved: tuple[int, UUID | None] = (NO_LEADER, None)  # A replica, and its directory.

    def __post_init__(self) -> None:
        partition = self.partition
        self.isr, self.replicas = partition.isr, partition.replicas
        self.removing, self.adding = partition.removing_replicas, partition.adding_replicas
        self.recovery_state = partition.leader_recovery_state

    def remove(self, broker_id: int, departure: Departure) -> None:
        """The broker neither leads nor is in sync any more."""
        self.isr = _without(self.isr, (broker_id,))
        self.gone, self.departure = broker_id, departure

    def records(self) -> Iterator[PartitionChangeRecord]:
        """None or one."""
        record = self.record()
        if record is not None:
            yield record

    def record(self) -> PartitionChangeRecord | None:
        self._maybe_complete_reassignment()
        eligible = self._eligible()
        leader, is_clean = self._elect(eligible)
        if leader != NO_LEADER and leader not in self.isr:
            self.isr = (leader,)
            # If one in-sync replica is enough, it alone acknowledges what the others will lack.
            keeps = is_clean and not self._is_isr_enough()
            eligible = _without(eligible, self.isr) if keeps else ()
        if not is_clean:
            self.recovery_state = RECOVERING
        return self._difference(leader, eligible)

    def _maybe_complete_reassignment(self) -> None:
        if not self.removing and not self.adding:
            return
        isr = _without(self.isr, self.removing)
        replicas = _without(self.replicas, self.removing)
        if isr and replicas and set(replicas) <= set(isr):
            self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _is_isr_enough(self) -> bool:
        """Whether the in-sync set may acknowledge; then no one else is known to have everything."""
        # Replicas being added do not count: the partition stays available while they copy it.
        return len(self.isr) >= min(self.min_isr, len(self.replicas) - len(self.adding))

    def _eligible(self) -> Replicas:
        if self._is_isr_enough():
            return ()
        partition = self.partition
        known = dict.fromkeys((*(partition.eligible_leader_replicas or ()), *partition.isr))
        left = tuple(
            replica for replica in known if replica in self.replicas and replica not in self.isr
        )
        if self.departure is Departure.INTACT:
            return left
        trusted = _without(left, (self.gone,))
        if not trusted and not self.isr and self.departure is Departure.UNCLEAN:
            return left
        return trusted

    def _elect(self, eligible: Replicas) -> tuple[BrokerId, bool]:
        """The leader, and whether it has everything."""
        candidates = self.isr or eligible
        leader = self.partition.leader
        preferred = (self.replicas[0],) if self.election is Election.PREFERRED else ()
        able = [
            replica
            for replica in (*preferred, leader, *self.replicas)
            if replica in candidates and self._can_lead(replica)
        ]
        if able:
            return next(filter(self.has_room, able), able[0]), True
        if self.election is Election.UNCLEAN:
            # The last leader is likely to have most.
            for replica in (*(self.partition.last_known_elr or ()), *self.replicas):
                if replica in self.replicas and self._can_lead(replica):
                    return replica, False
        return NO_LEADER, True

    def _can_lead(self, replica: int) -> bool:
        return replica != self.gone and (replica == self.also_active or self.is_active(replica))

    def _difference(self, leader: BrokerId, eligible: Replicas) -> PartitionChangeRecord | None:
        partition = self.partition
        changes: dict[str, Any] = {}
        if leader != partition.leader or not set(partition.replicas) <= set(self.replicas):
            # Naming the leader raises its epoch, which fences a replica that was removed.
            changes["leader"] = leader
        if self.isr != partition.isr:
            changes["isr"] = self.isr
        if eligible != (partition.eligible_leader_replicas or ()):
            changes["eligible_leader_replicas"] = eligible
        last_known = self._last_known(leader)
        if last_known != (partition.last_known_elr or ()):
            changes["last_known_elr"] = last_known
        if self.replicas != partition.replicas:
            changes["replicas"] = self.replicas
        if self.removing != partition.removing_replicas:
            changes["removing_replicas"] = self.removing
        if self.adding != partition.adding_replicas:
            changes["adding_replicas"] = self.adding
        directories = directories_for(self.replicas, partition, self.moved)
        if directories != partition.directories:
            changes["directories"] = directories
        if self.recovery_state != partition.leader_recovery_state:
            changes["leader_recovery_state"] = self.recovery_state
        if not changes:
            return None
        return PartitionChangeRecord(
            partition_id=partition.partition_id, topic_id=partition.topic_id, **changes
        )

    def _last_known(self, leader: BrokerId) -> Replicas:
        """The last leader, while there is no leader and no one is in sync."""
        if leader != NO_LEADER:
            return ()
        if self.isr or self.partition.leader == NO_LEADER:
            return self.partition.last_known_elr or ()
        return (self.partition.leader,)


def _without(replicas: Replicas, gone: Collection[int]) -> Replicas:
    return tuple(replica for replica in replicas if replica not in gone)
