"""The states of a classic group and every legal transition.

    EMPTY
        -> PREPARING_REBALANCE   a member joins
        -> DEAD                  the group is deleted, or its last offset has expired
    PREPARING_REBALANCE          members are asked to rejoin; JoinGroup replies are parked
        -> COMPLETING_REBALANCE  all members have rejoined, or the rebalance timeout has passed and
                                 those that did not rejoin were removed
        -> EMPTY                 all members have left or were removed
    COMPLETING_REBALANCE         a generation has begun and waits for the leader's assignment;
                                 SyncGroup replies are parked
        -> STABLE                the leader sends the assignment
        -> PREPARING_REBALANCE   a member joins, rejoins with other metadata, leaves or fails, or
                                 does not send SyncGroup in time
    STABLE                       every member has its assignment
        -> PREPARING_REBALANCE   a member joins, leaves or fails, the leader rejoins, a member
                                 rejoins with other metadata, or a member never sent SyncGroup
    DEAD                         the group is forgotten; nothing leads out of it

A group that is upgraded to the consumer protocol (KIP-848) becomes DEAD here, from any state.
"""

import enum


class ClassicState(enum.Enum):
    """The values are the names that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_NEXT = {
    ClassicState.EMPTY: {ClassicState.PREPARING_REBALANCE, ClassicState.DEAD},
    ClassicState.PREPARING_REBALANCE: {
        ClassicState.COMPLETING_REBALANCE,
        ClassicState.EMPTY,
        ClassicState.DEAD,
    },
    ClassicState.COMPLETING_REBALANCE: {
        ClassicState.STABLE,
        ClassicState.PREPARING_REBALANCE,
        ClassicState.DEAD,
    },
    ClassicState.STABLE: {ClassicState.PREPARING_REBALANCE, ClassicState.DEAD},
    ClassicState.DEAD: set(),
}


def is_legal(before: ClassicState, after: ClassicState) -> bool:
    return after in _NEXT[before]


def can_rebalance(state: ClassicState) -> bool:
    return is_legal(state, ClassicState.PREPARING_REBALANCE)
