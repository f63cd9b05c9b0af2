"""Nodes of a quorum crash and lose what was not synced, disks are full, links are cut: what was
acknowledged stays, and all nodes have the same in the end.
"""

import asyncio
from contextlib import suppress
from itertools import count
from random import Random

import pytest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8
from tests.kits.quorums import QuorumCluster, QuorumNode, run
from tests.kits.world import until

from ottla.controller.image import GROUP_RESOURCE
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime import metadata_snapshots

NODES = 4  # One of them is an observer.
ROUNDS = 12


def set_group(number: int) -> IncrementalAlterConfigsRequest:
    """Each change is unique, because one that was given up may arrive late."""
    config = AlterableConfig(
        name="consumer.session.timeout.ms", config_operation=i8(0), value="50000"
    )
    resource = AlterConfigsResource(
        resource_type=i8(GROUP_RESOURCE), resource_name=str(number), configs=(config,)
    )
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


class Writer:
    """Keeps changing the metadata through any running node."""

    def __init__(self, cluster: QuorumCluster, chance: Random) -> None:
        self.acknowledged: list[str] = []
        self._cluster = cluster
        self._chance = chance

    async def run(self) -> None:
        for number in count():
            node = self._chance.choice(self._cluster.running)
            changing = asyncio.ensure_future(node.call(set_group(number), timeout_ms=300))
            await asyncio.wait([changing], timeout=1)
            if changing.cancel() or changing.cancelled():
                continue  # The node has exited.
            with suppress(ApiError):
                if changing.result().responses[0].error_code is ErrorCode.none:
                    self.acknowledged.append(str(number))
            await asyncio.sleep(0.05)


def groups_of(node: QuorumNode) -> set[str]:
    configs = node.node.image.configs
    return {name for kind, name in configs if kind == GROUP_RESOURCE}


async def disturb(cluster: QuorumCluster, chance: Random) -> None:
    victim = chance.choice(cluster.running)
    fault = chance.choice(["crash", "crash", "stop", "cut off", "full disk"])
    if fault == "cut off":
        cluster.cut_off(victim)
        await asyncio.sleep(chance.uniform(0, 5))
        cluster.mend(victim)
    elif fault == "full disk":
        victim.disk.disk_full()
        await asyncio.sleep(chance.uniform(0, 3))
        victim.disk.disk_full(None)
    else:
        if fault == "crash":
            victim.crash()
        else:
            await victim.stop()
        await asyncio.sleep(chance.uniform(0, 3))
        await cluster.start(victim.id)


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_stays(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 20)

    async def test(cluster: QuorumCluster) -> None:
        chance = Random(seed)
        await cluster.form(NODES - 1)
        await cluster.start(NODES)
        writer = Writer(cluster, chance)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(writer.run())
            for _ in range(ROUNDS):
                await asyncio.sleep(chance.uniform(0, 0.2))
                await disturb(cluster, chance)
                before = len(writer.acknowledged)
                await until(lambda before=before: len(writer.acknowledged) > before)  # type: ignore[misc]
            writing.cancel()
        await (await cluster.leader()).call(set_group(-1))
        await until(lambda: all("-1" in groups_of(node) for node in cluster.running))
        assert len(cluster.running) == NODES
        for node in cluster.running:
            assert groups_of(node) == groups_of(cluster[1]) > set(writer.acknowledged)

    run(test, seed=seed)
