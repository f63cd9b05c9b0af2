"""Places the replicas of new partitions on brokers.

The leaders of the partitions rotate, so they are spread evenly over brokers. Followers go to other
racks as long as there are any, there to the broker with the fewest replicas so far, and among
equals in rotation, so that the partitions of one leader do not all share the same followers. A
cordoned broker gets nothing new (KIP-1066).
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
    """The replicas of each new partition; `start` selects the first broker."""
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
    """Neighbours are in different racks for as long as more than one rack is left."""
    racks: dict[str | None, list[Candidate]] = {}
    for candidate in sorted(candidates):
        racks.setdefault(candidate.rack, []).append(candidate)
    queues = [racks[rack] for rack in sorted(racks, key=lambda rack: rack or "")]
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _others(pool: Sequence[Candidate], leader: Candidate, lap: int) -> list[Candidate]:
    """All but the leader, in rotation from the one after it; each lap starts one further."""
    others = [candidate for candidate in pool if candidate != leader]
    if not others:
        return others
    shift = (pool.index(leader) + lap) % len(others)
    return others[shift:] + others[:shift]


def _spread(
    leader: Candidate, others: list[Candidate], placed: Mapping[int, int], count: int
) -> list[BrokerId]:
    """Followers in the racks with the fewest of this partition, on the emptiest brokers."""
    used: Counter[str | None] = Counter([leader.rack])
    chosen: list[BrokerId] = []
    while len(chosen) < count:
        # A broker without a rack counts as its own rack.
        best = min(
            others,
            key=lambda node: (used[node.rack] if node.rack else 0, placed.get(node.broker_id, 0)),
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
    """Validate one partition of a manual assignment; the factor is None for the first.

    A cordoned broker keeps the replicas that it has (`present`).
    """
    known_ids = {candidate.broker_id for candidate in known}
    strays = [broker_id for broker_id in replicas if broker_id not in known_ids]
    cordoned = {broker.broker_id for broker in known if broker.cordoned}
    refused = [replica for replica in replicas if replica in cordoned and replica not in present]
    if not replicas:
        problem = "an empty replica list"
    elif strays:
        problem = f"broker {strays[0]}, but no such broker is registered"
    elif len(set(replicas)) != len(replicas):
        problem = f"the broker {_repeated(replicas)} more than once"
    elif refused:
        problem = f"broker {refused[0]}, but it is drained (cordoned)"
    elif replication_factor is not None and len(replicas) != replication_factor:
        problem = (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with"
            f" previous partitions, which have {replication_factor} replica(s)"
        )
    elif not any(broker.active and broker.broker_id in replicas for broker in known):
        problem = f"only brokers that are fenced or in controlled shutdown: {_listed(replicas)}"
    else:
        return
    raise ApiError(
        ErrorCode.invalid_replica_assignment,
        f"The manual partition assignment includes {problem}.",
    )


def _repeated(replicas: Sequence[int]) -> int:
    return next(replica for replica in replicas if replicas.count(replica) > 1)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
