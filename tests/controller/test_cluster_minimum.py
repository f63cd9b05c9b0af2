from typing import Any

import pytest
from tests.controller.cluster import Cluster

from ottla.controller.image import BROKER_RESOURCE
from ottla.controller.records import ConfigRecord

MINIMUM = "min.insync.replicas"


def for_all_brokers(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MINIMUM, value=value)


@pytest.mark.parametrize(
    ("static", "stored", "written"),
    [
        ({}, [], []),
        ({"min_insync_replicas": 2}, [], [for_all_brokers("2")]),
        ({"min_insync_replicas": 2}, [for_all_brokers("3")], []),
    ],
)
def test_the_first_controller_writes_what_its_file_has(
    static: dict[str, Any], stored: list[ConfigRecord], written: list[ConfigRecord]
) -> None:
    cluster = Cluster(brokers=0, **static)
    cluster.replay(*stored)
    cluster.reload()
    cluster.advance(0)
    assert cluster.records == [*stored, *written]


def test_a_value_that_comes_before_the_controller_writes_stays() -> None:
    cluster = Cluster(brokers=0, min_insync_replicas=2)
    cluster.reload()
    cluster.replay(for_all_brokers("3"))
    cluster.advance(0)
    assert cluster.image.default_broker_configs() == {MINIMUM: "3"}
