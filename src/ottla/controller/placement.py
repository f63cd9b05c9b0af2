"""On which brokers the replicas of new partitions are placed.

Each partition takes the next leader in turn, so leaders are even over brokers. Followers go to
other racks for as long as there are any, there to the broker with the fewest replicas so far, and
among equals in turn, so that the partitions of one leader do not all share the same followers. A
broker that is cordoned gets nothing new (KIP-1066).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kio.schema.types import BrokerId

from ottla.protocol.errors import ApiError, ErrorCode


class Candidate(NamedTuple):
    broker_id: BrokerId
    rack: str | None
    active: bool  # Only an active broker can be the first replica.
    cordoned: bool = False  # It gets no new replicas.


def place_replicas(
    candidates: Sequence[Candidate], partition_count: int, replication_factor: int, start: int
) -> list[tuple[BrokerId, ...]]:
    """The replicas of each new partition; `start` says which broker comes first."""
    candidates = [candidate for candidate in candidates if not candidate.cordoned]
    validate_replication_factor(candidates, replication_factor)
    active = [candidate for candidate in candidates if candidate.active]
    pool = _alternate_racks(active if len(active) >= replication_factor else candidates)
    leaders = _alternate_racks(active)
    placed: Counter[int] = Counter()
    partitions = []
    for turn in range(start, start + partition_count):
        leader = leaders[turn % len(leaders)]
        others = _others(pool, leader, lap=turn // len(leaders))
        replicas = (leader.broker_id, *_spread(leader, others, placed, replication_factor - 1))
        placed.update(replicas)
        partitions.append(replicas)
    return partitions


def validate_replication_factor(candidates: Sequence[Candidate], replication_factor: int) -> None:
    if replication_factor > len(candidates):
        raise ApiError(
            ErrorCode.invalid_replication_factor,
            f"the replication factor {replication_factor} needs as many brokers, "
            f"and {len(candidates)} are registered and not drained",
        )
    if not any(candidate.active for candidate in candidates):
        raise ApiError(
            ErrorCode.invalid_replication_factor, "no broker is active; try again when one is"
        )


def _alternate_racks(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Neighbours are in different racks for as long as there is more than one rack left."""
    racks: dict[str | None, list[Candidate]] = {}
    for candidate in sorted(candidates):
        racks.setdefault(candidate.rack, []).append(candidate)
    queues = [racks[rack] for rack in sorted(racks, key=lambda rack: rack or "")]
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _others(pool: Sequence[Candidate], leader: Candidate, lap: int) -> list[Candidate]:
    """All but the leader, in turn from the one after it on; each lap begins one further."""
    others = [candidate for candidate in pool if candidate != leader]
    if not others:
        return others
    shift = (pool.index(leader) + lap) % len(others)
    return others[shift:] + others[:shift]


def _spread(
    leader: Candidate, others: list[Candidate], placed: Mapping[int, int], count: int
) -> list[BrokerId]:
    """Followers on the racks that have fewest of this partition, there on the emptiest brokers."""
    used: Counter[str | None] = Counter([leader.rack])
    chosen: list[BrokerId] = []
    while len(chosen) < count:
        # A broker without a rack is a rack of its own.
        best = min(
            others,
            key=lambda one: (used[one.rack] if one.rack else 0, placed.get(one.broker_id, 0)),
        )
        others.remove(best)
        used[best.rack] += 1
        chosen.append(best.broker_id)
    return chosen


def validate_manual(
    replicas: Sequence[int],
    known: Sequence[Candidate],
    replication_factor: int | None,
    present: Collection[int] = (),
) -> None:
    """Check one partition of a manual assignment; None for the first, which sets the factor.

    A broker that is cordoned keeps the replicas that it has (`present`).
    """
    known_ids = {candidate.broker_id for candidate in known}
    strays = [broker_id for broker_id in replicas if broker_id not in known_ids]
    cordoned = {one.broker_id for one in known if one.cordoned}
    refused = [replica for replica in replicas if replica in cordoned and replica not in present]
    if not replicas:
        problem = "a manual assignment has a partition without replicas"
    elif len(set(replicas)) != len(replicas):
        problem = f"a manual assignment names a broker twice: {_listed(replicas)}"
    elif strays:
        problem = f"a manual assignment names broker {strays[0]}, which is not registered"
    elif refused:
        problem = f"a manual assignment names broker {refused[0]}, which is drained (cordoned)"
    elif replication_factor is not None and len(replicas) != replication_factor:
        problem = (
            f"a manual assignment has {len(replicas)} replicas for a partition "
            f"where others have {replication_factor}"
        )
    elif not any(one.active and one.broker_id in replicas for one in known):
        problem = f"none of the brokers {_listed(replicas)} of a manual assignment is active"
    else:
        return
    raise ApiError(ErrorCode.invalid_replica_assignment, problem)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
