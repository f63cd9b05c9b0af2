"""Which brokers can be given new replicas."""

import pytest
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest as UnregisterRequest
from tests.controller.cluster import Cluster
from tests.controller.test_topics import creation, topic

from ottla.controller.image import BROKER_RESOURCE
from ottla.controller.partitions import candidates
from ottla.controller.records import ConfigRecord, UnregisterBrokerRecord


def cordon(cluster: Cluster, broker_id: int, value: str | None) -> None:
    cluster.replay(
        ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name=str(broker_id),
            name="cordoned.log.dirs",
            value=value,
        )
    )


def cordoned(cluster: Cluster) -> set[int]:
    return {candidate.broker_id for candidate in candidates(cluster.image) if candidate.cordoned}


@pytest.mark.parametrize(
    ("value", "expected"),
    [("*", {2}), ("/a", set()), ("/a,/b", {2}), ("/a,/a", set()), ("", set()), (None, set())],
)
def test_a_broker_is_cordoned_when_all_its_directories_are(
    value: str | None, expected: set[int]
) -> None:
    cluster = Cluster(brokers=1)
    cluster.register(2, log_dirs=(1, 2))
    cordon(cluster, 2, value)
    assert cordoned(cluster) == expected


def test_it_stays_so_for_the_next_controller_and_the_next_life_of_the_broker() -> None:
    cluster = Cluster(brokers=2)
    cordon(cluster, 2, "*")
    cluster.reload()
    cluster.expire_session(2)
    cluster.register(2, incarnation=900)
    assert cordoned(cluster) == {2}


def test_a_broker_that_is_unregistered_leaves_no_configs_behind() -> None:
    cluster = Cluster(brokers=2)
    cordon(cluster, 2, "*")
    cluster.expire_session(2)
    result = cluster.result_of(UnregisterRequest(broker_id=BrokerId(2)))
    assert [type(record) for record in result.records] == [ConfigRecord, UnregisterBrokerRecord]
    cluster.apply(result)
    cluster.register(2, incarnation=901)
    assert cordoned(cluster) == set()


def test_a_topic_without_a_factor_has_no_more_replicas_than_there_are_places() -> None:
    cluster = Cluster(brokers=3)
    cordon(cluster, 2, "*")
    cluster.call(creation(topic("orders", 1, -1)))
    assert set(cluster.image.topics["orders"].partitions[0].replicas) == {1, 3}
