"""The controller's log lines about brokers and partitions, and how many."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from kio.schema.alter_partition.v3.request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64
from kio.static.protocol import Entity
from tests.controller.cluster import SESSION_MS, Cluster
from tests.controller.test_topics import creation, topic

from ottla.machine.result import Result
from ottla.runtime import log_summaries
from ottla.runtime.controller_reports import ControllerReports


class ReportedCluster(Cluster):
    """A controller whose results are observed, as by the active controller's runtime."""

    def __init__(self, *arguments: Any, **static: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.reports = ControllerReports(self.loop)
        super().__init__(*arguments, **static)

    def apply(self, result: Result[Any]) -> Entity | None:
        response: Entity | None = super().apply(self.reports.observe(self.machine, result))
        return response

    def lines(self, caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
        """The lines since the last call."""
        for _ in range(3):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
        lines = [(record.levelname, record.message) for record in caplog.records]
        caplog.clear()
        return lines


@pytest.fixture
def cluster(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ReportedCluster]:
    monkeypatch.setattr(log_summaries, "INTERVAL_S", 0)
    caplog.set_level("INFO")
    cluster = ReportedCluster(brokers=3)
    cluster.lines(caplog)
    yield cluster
    cluster.loop.close()


def create(cluster: ReportedCluster, name: str, **replicas: Any) -> None:
    cluster.call(creation(topic(name, **replicas)))


def alter_isr(cluster: ReportedCluster, leader: int, isr: tuple[int, int]) -> None:
    state = cluster.image.partition("orders", 0)
    assert state is not None
    brokers = tuple(
        BrokerState(broker_id=BrokerId(broker_id), broker_epoch=i64(-1)) for broker_id in isr
    )
    partition = PartitionData(
        partition_index=i32(0),
        leader_epoch=state.leader_epoch,
        new_isr_with_epochs=brokers,
        partition_epoch=state.partition_epoch,
    )
    request = AlterPartitionRequest(
        broker_id=BrokerId(leader),
        broker_epoch=cluster.image.brokers[leader].broker_epoch,
        topics=(TopicData(topic_id=UUID(int=1), partitions=(partition,)),),
    )
    cluster.call(request)


def test_thousands_of_partitions_of_a_dead_broker_are_told_in_a_few_lines(
    cluster: ReportedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    create(cluster, "orders", partitions=3000, replication=3)
    assert cluster.lines(caplog) == []
    epoch = cluster.image.brokers[2].broker_epoch
    cluster.apply(cluster.machine.brokers.end_broker(2, epoch, cluster.now_ms))
    cluster.advance(0)
    assert cluster.image.brokers[2].fenced
    assert cluster.lines(caplog) == [
        (
            "WARNING",
            "node 2 is fenced: its process has ended; new leader of 1000 partitions "
            "(2 -> 3: 500, 2 -> 1: 500), first orders-1; in-sync replicas of 3000 partitions "
            "(without 2: 3000), first orders-0",
        )
    ]


def test_a_silent_broker_is_fenced_for_its_silence(
    cluster: ReportedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    create(cluster, "orders", assignments={0: (1, 2, 3)})
    cluster.lines(caplog)
    for _ in range(3):
        cluster.advance(SESSION_MS // 2)
        for broker_id in (2, 3):
            cluster.heartbeat(broker_id)
    assert cluster.lines(caplog) == [
        (
            "WARNING",
            "node 1 is fenced: no heartbeat for 1.5 s; new leader of orders-0 (1 -> 2); "
            "in-sync replicas of orders-0 (without 1)",
        )
    ]


def test_a_partition_without_a_leader_is_a_warning(
    cluster: ReportedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    create(cluster, "orders", assignments={0: (1,)})
    cluster.lines(caplog)
    cluster.heartbeat(1, want_shut_down=True)
    assert cluster.lines(caplog) == [
        (
            "WARNING",
            "node 1 is stopping; new leader of orders-0 (1 -> none); "
            "in-sync replicas of orders-0 (without 1)",
        )
    ]


def test_a_controlled_shutdown_and_the_way_back(
    cluster: ReportedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    create(cluster, "orders", assignments={0: (1, 2)})
    cluster.lines(caplog)
    cluster.heartbeat(1, want_shut_down=True)
    for broker_id in (2, 3):
        cluster.heartbeat(broker_id)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.register(1, incarnation=9)
    cluster.heartbeat(1)
    assert cluster.lines(caplog) == [
        (
            "INFO",
            "node 1 is stopping; new leader of orders-0 (1 -> 2); "
            "in-sync replicas of orders-0 (without 1)",
        ),
        ("INFO", "node 1 is fenced: it leads nothing and may stop"),
        ("INFO", "node 1 registered as a new process"),
        ("INFO", "node 1 is active: it has read the metadata"),
    ]


def test_in_sync_sets_that_shrink_and_grow(
    cluster: ReportedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    create(cluster, "orders", assignments={0: (1, 2, 3)})
    cluster.lines(caplog)
    alter_isr(cluster, 1, (1, 2))
    assert cluster.lines(caplog) == [
        ("INFO", "node 1 reported an in-sync change; in-sync replicas of orders-0 (without 3)")
    ]


def test_heartbeats_that_change_nothing_say_nothing(
    cluster: ReportedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(10):
        cluster.heartbeat(1)
    assert cluster.lines(caplog) == []
