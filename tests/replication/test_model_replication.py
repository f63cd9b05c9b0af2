"""Random failures, one at a time: acknowledged records are there at the end, once and in order.

Repeat a failing seed with `run(scenario(seed), ...)`.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from tests.kits.brokers import SHORT_LAG_MAX_MS, Cluster, run
from tests.kits.world import until
from tests.storage.batches import read_all

from ottla.controller.records import NO_LEADER
from ottla.protocol.errors import ApiError
from ottla.replication.partition import FlushPolicy

TOPIC = "topic"
STEPS_COUNT = 12


class Producer:
    """Writes numbers, one at a time; `acked` has the acknowledged ones.

    It writes to any broker that believes it leads.
    """

    def __init__(self, cluster: Cluster, name: str, chance: Random) -> None:
        self.cluster = cluster
        self.chance = chance
        self.name = name
        self.acked: list[str] = []
        self.stopped = False

    async def run(self) -> None:
        number = 0
        while not self.stopped:
            value = f"{self.name}{number}"
            number += 1
            try:
                broker = self.chance.choice(list(self.cluster.brokers.values()))
                async with asyncio.timeout(0.3):
                    await broker.produce(TOPIC, value)
            except (ApiError, TimeoutError):
                await asyncio.sleep(0.001)
            else:
                self.acked.append(value)


async def fence(cluster: Cluster, broker_id: int) -> None:
    """Like the controller: not in sync while others are, and no longer leader."""
    isr = cluster.state(TOPIC).isr
    others = tuple(member for member in isr if member != broker_id)
    changes: dict[str, Any] = {"isr": others or isr}
    if cluster.state(TOPIC).leader == broker_id:
        changes["leader"] = (others or [NO_LEADER])[0]
    await cluster.change(TOPIC, **changes)


async def crash(cluster: Cluster, chance: Random, broker_id: int) -> None:
    await cluster.crash(broker_id)
    await asyncio.sleep(chance.random() * 0.05)
    await cluster.restart(broker_id)


async def cut(cluster: Cluster, chance: Random, broker_id: int) -> None:
    """The broker and the controller do not hear from each other."""
    cluster.cut(broker_id)
    await asyncio.sleep(chance.random() * 0.05)
    await fence(cluster, broker_id)
    await asyncio.sleep(chance.random() * 0.05)
    cluster.heal()


async def elect(cluster: Cluster, chance: Random, broker_id: int) -> None:
    if broker_id in cluster.state(TOPIC).isr:
        await cluster.change(TOPIC, leader=broker_id)
    await asyncio.sleep(chance.random() * 0.02)


def scenario(seed: int) -> Callable[[Cluster], Coroutine[Any, Any, None]]:
    async def test(cluster: Cluster) -> None:
        chance = random.Random(seed)
        await cluster.create(TOPIC)
        producers = [Producer(cluster, name, chance) for name in "abc"]
        tasks = [asyncio.ensure_future(producer.run()) for producer in producers]
        for _ in range(STEPS_COUNT):
            await asyncio.sleep(chance.random() * 0.03)
            action = chance.choice([crash, cut, elect, elect])
            await action(cluster, chance, chance.choice([1, 2, 3]))
            # Heal before the next failure: acked means surviving one failure.
            await until(lambda: len(cluster.state(TOPIC).isr) == 3)
        await until(lambda: all(producer.acked for producer in producers))
        for producer in producers:
            producer.stopped = True
        await asyncio.gather(*tasks)
        await until(lambda: len({read_all(b.log(TOPIC)) for b in cluster.brokers.values()}) == 1)
        values = cluster.leader(TOPIC).values(TOPIC)
        for producer in producers:
            kept = [value for value in values if value in set(producer.acked)]
            assert kept == producer.acked

    return test


@pytest.mark.parametrize("policy", [FlushPolicy.ACK, FlushPolicy.OS])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_survives_each_failure(seed: int, policy: FlushPolicy) -> None:
    run(
        scenario(seed),
        policy=policy,
        seed=seed,
        min_insync_replicas=2,
        replica_lag_time_max_ms=SHORT_LAG_MAX_MS,
    )
