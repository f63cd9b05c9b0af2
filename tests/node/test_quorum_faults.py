"""Nodes of a quorum crash and lose what was not synced, disks are full, links are cut: what was
acknowledged stays, and all nodes have the same in the end.
"""

import asyncio
from random import Random

import pytest
from tests.node.quorum_kit import QuorumCluster, set_partitions, until, until_voter

from ottla.protocol.errors import ApiError
from ottla.runtime import metadata_snapshots, raft_driver

NODES = 4  # One of them observes.
ROUNDS = 12


class Writer:
    """Changes one value, again and again, through any node that runs."""

    def __init__(self, cluster: QuorumCluster, chance: Random) -> None:
        self.tried = 0
        self.acknowledged = 0
        self._cluster = cluster
        self._chance = chance

    async def run(self) -> None:
        while True:
            node = self._chance.choice(list(self._cluster.nodes.values()))
            self.tried += 1
            try:
                await node.quorum.controller.call(set_partitions(self.tried), timeout_ms=300)
            except ApiError:
                await asyncio.sleep(0.01)
            else:
                self.acknowledged = self.tried
            await asyncio.sleep(0)


async def disturb(cluster: QuorumCluster, chance: Random) -> None:
    victim = chance.choice(list(cluster.nodes.values()))
    fault = chance.choice(["crash", "crash", "stop", "cut off", "full disk"])
    if fault == "cut off":
        cluster.network.cut_off.add(victim.id)
        await asyncio.sleep(chance.uniform(0, 0.5))
        cluster.network.cut_off.discard(victim.id)
    elif fault == "full disk":
        victim.disk.disk_full()
        await asyncio.sleep(chance.uniform(0, 0.3))
        victim.disk.disk_full(None)
    else:
        await (victim.crash() if fault == "crash" else victim.stop())
        await asyncio.sleep(chance.uniform(0, 0.3))
        await cluster.start(victim.id)


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_stays(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 20)
    monkeypatch.setattr(raft_driver, "RESTART_DELAY_S", 0.05)

    async def main() -> None:
        chance = Random(seed)
        cluster = QuorumCluster()
        for node in [await cluster.start(number) for number in range(1, NODES + 1)][1:-1]:
            await until_voter(node)
        writer = Writer(cluster, chance)
        writing = asyncio.ensure_future(writer.run())
        for _ in range(ROUNDS):
            await asyncio.sleep(chance.uniform(0, 0.2))
            await disturb(cluster, chance)
            acknowledged = writer.acknowledged
            await until(lambda acknowledged=acknowledged: writer.acknowledged > acknowledged)
        writing.cancel()
        await asyncio.wait([writing])
        await until(lambda: len({node.partitions for node in cluster.nodes.values()}) == 1)
        leader = await cluster.leader()
        assert writer.acknowledged <= int(leader.partitions or 0) <= writer.tried
        await cluster.stop()

    asyncio.run(main())
