"""Replication quotas on their own, and throttled followers of a cluster."""

import asyncio
from typing import Any

import pytest
from tests.kits.brokers import Cluster, run
from tests.kits.manual_clock import ManualClock
from tests.kits.world import until

from ottla.replication.throttle import ReplicationQuota, is_listed

RECORDS = 16
VALUE = "x" * 100_000  # More than a follower fetches at once.


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [((), False), (("*",), True), (("0:1",), False), (("3:2", "0:1"), True), (("3:22",), False)],
)
def test_the_replicas_that_a_topic_names(replicas: tuple[str, ...], expected: bool) -> None:
    assert is_listed(replicas, 3, 2) is expected


def test_without_a_rate_nobody_waits() -> None:
    quota = ReplicationQuota(ManualClock())
    quota.spend(10**15)
    assert quota.wait_ms == 0


def test_what_was_too_much_is_paid_back_by_waiting() -> None:
    clock = ManualClock()
    quota = ReplicationQuota(clock)
    quota.set_rate(1000)
    assert quota.wait_ms == 0
    quota.spend(3000)  # The bucket had one second's worth.
    assert quota.wait_ms == pytest.approx(2001)
    clock.advance(1500)
    assert quota.wait_ms == pytest.approx(501)
    clock.advance(501)
    assert quota.wait_ms == 0


def test_a_rest_saves_no_more_than_a_second_of_the_rate() -> None:
    clock = ManualClock()
    quota = ReplicationQuota(clock)
    quota.set_rate(1000)
    clock.advance(60_000)
    quota.spend(1000)
    assert quota.wait_ms > 0


def test_a_higher_rate_holds_at_once_and_none_ends_the_waiting() -> None:
    clock = ManualClock()
    quota = ReplicationQuota(clock)
    quota.set_rate(1000)
    quota.spend(11_000)
    assert quota.wait_ms == pytest.approx(10_001)
    quota.set_rate(10_000)
    assert quota.wait_ms == pytest.approx(1000, rel=0.01)
    quota.set_rate(0)  # As slow as possible, without a division by zero.
    assert quota.wait_ms > 1000
    quota.set_rate(2**63 - 1)
    clock.advance(1)
    assert quota.wait_ms == 0


def throttle(cluster: Cluster, side: str, rate: int) -> None:
    for broker in cluster.brokers.values():
        getattr(broker.replicas.throttle, side).set_rate(rate)


def size(cluster: Cluster, broker_id: int) -> int:
    return cluster.brokers[broker_id].log("topic").size


async def fill(cluster: Cluster, **replicas: Any) -> None:
    """What broker 3 lacks while it is cut off and out of sync; sets the throttled replicas."""
    configs = {f"{side}_replication_throttled_replicas": each for side, each in replicas.items()}
    await cluster.create("topic", isr=(1, 2), **configs)
    cluster.cut(3)
    leader = cluster.leader("topic")
    for _ in range(RECORDS):
        await leader.produce("topic", VALUE)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_follower_that_catches_up_is_held_up_until_the_throttle_goes(side: str) -> None:
    async def test(cluster: Cluster) -> None:
        throttle(cluster, side, 1)
        for broker in cluster.brokers.values():
            broker.replicas.throttle.leader.spend(1000)
            broker.replicas.throttle.follower.spend(1000)
        await fill(cluster, **{side: "*"})
        cluster.heal()
        await asyncio.sleep(5)
        assert cluster.state("topic").isr == (1, 2)
        assert size(cluster, 3) < size(cluster, 1)
        await cluster.leader("topic").produce("topic", VALUE)  # In-sync replicas are not throttled.
        for broker in cluster.brokers.values():
            getattr(broker.replicas.throttle, side).set_rate(1 << 30)
        await until(lambda: size(cluster, 3) == size(cluster, 1))
        await until(lambda: cluster.state("topic").isr == (1, 2, 3))

    run(test)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_copy_goes_on_by_itself(side: str) -> None:
    async def test(cluster: Cluster) -> None:
        throttle(cluster, side, 4_000_000)
        for broker in cluster.brokers.values():
            getattr(broker.replicas.throttle, side).spend(5_000_000)
        await fill(cluster, **{side: "*"})
        cluster.heal()
        await until(lambda: cluster.state("topic").isr == (1, 2, 3))
        assert size(cluster, 3) == size(cluster, 1)

    run(test)


def test_replicas_that_are_not_named_are_not_throttled() -> None:
    async def test(cluster: Cluster) -> None:
        throttle(cluster, "leader", 1)
        throttle(cluster, "follower", 1)
        for broker in cluster.brokers.values():
            broker.replicas.throttle.leader.spend(1 << 30)
            broker.replicas.throttle.follower.spend(1 << 30)
        await fill(cluster, leader="0:3", follower="0:1")
        cluster.heal()
        await until(lambda: cluster.state("topic").isr == (1, 2, 3))

    run(test)
