from typing import Any
from uuid import UUID

import pytest
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32
from tests.controller.cluster import Cluster
from tests.controller.test_topics import creation, topic

from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import Election, PartitionChange
from ottla.controller.partition_index import PartitionIndex
from ottla.controller.records import ConfigRecord, PartitionChangeRecord

MINIMUM = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"


def config(
    name: str, value: str | None, of: tuple[int, str] = (TOPIC_RESOURCE, "orders")
) -> ConfigRecord:
    return ConfigRecord(resource_type=i8(of[0]), resource_name=of[1], name=name, value=value)


ALL_BROKERS = (BROKER_RESOURCE, "")


class Kit:
    def __init__(self, **static: Any) -> None:
        self.cluster = Cluster(brokers=3, **static)
        self.cluster.call(creation(topic("orders", 1, 3)))
        self.rules = Leadership(self.cluster.image, self.cluster.settings.config_rules)

    def change(self) -> PartitionChange:
        return self.rules.change(self.cluster.partition("orders", 0))


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([], 1),
        ([config(MINIMUM, "2", ALL_BROKERS)], 2),
        ([config(MINIMUM, "2", ALL_BROKERS), config(MINIMUM, "3")], 3),
        ([config(MINIMUM, "2", ALL_BROKERS), config(MINIMUM, "-5")], 2),
        ([config(MINIMUM, "2", (BROKER_RESOURCE, "1"))], 1),
    ],
)
def test_the_minimum_is_what_all_nodes_know(configs: list[ConfigRecord], expected: int) -> None:
    """This node's file says 2; the others' files may differ."""
    kit = Kit(min_insync_replicas=2)
    kit.cluster.replay(*configs)
    assert kit.change().min_isr == expected


@pytest.mark.parametrize(
    ("static", "configs", "expected"),
    [
        ({}, [], Election.ONLINE),
        ({"unclean_leader_election_enable": True}, [], Election.UNCLEAN),
        (
            {"unclean_leader_election_enable": True},
            [config(UNCLEAN, "false")],
            Election.ONLINE,
        ),
        ({}, [config(UNCLEAN, "true", ALL_BROKERS)], Election.UNCLEAN),
    ],
)
def test_unclean_elections_are_held_where_they_are_allowed(
    static: dict[str, bool], configs: list[ConfigRecord], expected: Election
) -> None:
    kit = Kit(**static)
    kit.cluster.replay(*configs)
    assert kit.change().election is expected


def test_active_is_neither_fenced_nor_shutting_down() -> None:
    kit = Kit()
    assert [kit.rules.is_active(id_) for id_ in (1, 2, 3, 4)] == [True, True, True, False]
    kit.cluster.expire_session(1)
    kit.cluster.heartbeat(2, want_shut_down=True)
    assert [kit.rules.is_active(id_) for id_ in (1, 2, 3)] == [False, False, True]


def test_configs_that_are_written_change_partitions_in_the_same_batch() -> None:
    kit = Kit()
    kit.cluster.replay(
        config(MINIMUM, "3"),
        PartitionChangeRecord(
            partition_id=i32(0),
            topic_id=UUID(int=1),
            isr=(BrokerId(1), BrokerId(2)),
            eligible_leader_replicas=(BrokerId(3),),
        ),
    )
    index = PartitionIndex(type(kit.cluster.image)())
    for record in kit.cluster.records:
        index.replay(record)
    for written, expected in (
        ([config(MINIMUM, "2")], 1),
        ([config(MINIMUM, None)], 1),
        ([config(MINIMUM, "2", ALL_BROKERS)], 0),
        ([config(MINIMUM, "2", (TOPIC_RESOURCE, "other"))], 0),
        ([config("retention.ms", "2")], 0),
    ):
        records = list(kit.rules.changes_by_configs(index, written))
        assert len(records) == expected
