"""Broker 1 leads in rack a; 2 and 4 are in rack b, 3 in rack c."""

from dataclasses import replace

import pytest
from tests.replication.manager_kit import ManagerKit
from tests.replication.roles import leader_of

from ottla.replication.followers import FollowerFetch
from ottla.replication.replica_selection import LEADER, nearest_replica

RACKS = {1: "a", 2: "b", 3: "c", 4: "b"}


@pytest.fixture
def kit() -> ManagerKit:
    kit = ManagerKit()
    kit.register(1, 2, 3, 4)
    for broker_id, rack in RACKS.items():
        kit.record(replace(kit.image.brokers[broker_id], rack=rack))
    kit.create("topic", replicas=(1, 2, 3, 4))
    for replica, offset in ((2, 5), (3, 9), (4, 7)):
        fetch = FollowerFetch(replica, 70 + replica, offset, 2)
        leader_of(kit.partition("topic")).on_follower_fetch(fetch, 0)
    return kit


def choose(kit: ManagerKit, offset: int, rack: str) -> int:
    return nearest_replica(kit.image, 1, kit.partition("topic"), offset, rack)


@pytest.mark.parametrize(
    ("offset", "rack", "chosen"),
    [
        (3, "a", LEADER),
        (3, "b", 4),  # Both have it; this one has more.
        (6, "b", 4),
        (8, "b", LEADER),  # No replica in the rack has it.
        (1, "b", LEADER),  # They have deleted it.
        (3, "c", 3),
        (3, "d", LEADER),
    ],
)
def test_a_consumer_reads_in_its_rack_if_it_can(
    kit: ManagerKit, offset: int, rack: str, chosen: int
) -> None:
    assert choose(kit, offset, rack) == chosen


def test_replicas_that_are_not_in_sync_or_alive_are_not_read_from(kit: ManagerKit) -> None:
    kit.change("topic", isr=(1, 2, 3))
    assert choose(kit, 3, "b") == 2
    kit.record(replace(kit.image.brokers[2], fenced=True))
    assert choose(kit, 3, "b") == LEADER


def test_a_single_replica_is_read_from(kit: ManagerKit) -> None:
    kit.create("single", replicas=(1,))
    assert nearest_replica(kit.image, 1, kit.partition("single"), 0, "b") == LEADER
