"""The profile of a run, drawn from its seed, so that seeds differ in more than their timing."""

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    nodes_count: int = 1
    partitions_count: int = 2
    idempotent_producers_count: int = 2
    plain_producers_count: int = 1
    careless_producers_count: int = 0  # With acks=1.
    readers_count: int = 1
    consumer_members_count: int = 0
    classic_members_count: int = 0
    copiers_count: int = 0
    queue_workers_count: int = 0
    queue_order: bool = False  # Records have keys, and come to the workers in their order.
    round_interval_s: float = 0.2  # Between two rounds of producing, of all producers together.
    duration_s: float = 30.0  # Until faults end.
    faults: tuple[str, ...] = ()  # See `faults`.
    fault_interval_s: float = 3.0
    absent_count: int = 0  # Nodes that are gone from the first fault to the last.
    operations: tuple[str, ...] = ()  # See `clients.operator`.
    operation_interval_s: float = 5.0
    election_timeout_ms: int = 500  # Of the quorum.
    quorum_size: int = 3


def absence(count: int) -> Profile:
    """A quarter of an hour without so many of three nodes, with few clients."""
    return Profile(
        nodes_count=3,
        partitions_count=1,
        idempotent_producers_count=1,
        plain_producers_count=0,
        consumer_members_count=1,
        copiers_count=1,
        round_interval_s=10.0,
        duration_s=900.0,
        absent_count=count,
    )


def draw_profile(
    chance: random.Random, fault_names: Sequence[str], operation_names: Sequence[str]
) -> Profile:
    """Only some kinds of faults per run, because each hides what others would reveal."""
    nodes_count = chance.choice((1, 3, 3, 3, 3, 5))
    return Profile(
        nodes_count=nodes_count,
        partitions_count=chance.randint(1, 3),
        idempotent_producers_count=chance.randint(1, 2),
        plain_producers_count=chance.randint(0, 1),
        careless_producers_count=chance.choice((0, 0, 1)),
        consumer_members_count=chance.choice((0, 0, 2, 3)),
        classic_members_count=chance.choice((0, 0, 2, 3)),
        copiers_count=chance.choice((0, 0, 1, 2)),
        round_interval_s=chance.choice((0.2, 0.5, 1.5)),
        duration_s=chance.choice((30.0, 60.0, 60.0, 120.0)),
        faults=_some(chance, fault_names),
        fault_interval_s=chance.choice((1.0, 3.0, 8.0)),
        operations=_some(chance, operation_names) if chance.random() < 0.5 else (),
        operation_interval_s=chance.choice((2.0, 10.0)),
        election_timeout_ms=chance.choice((100, 500, 500, 4_000)),
        quorum_size=chance.choice((3, 3, 5)),
    )


def _some(chance: random.Random, names: Sequence[str]) -> tuple[str, ...]:
    share = chance.choice((0.2, 0.5))
    return tuple(name for name in names if chance.random() < share)
