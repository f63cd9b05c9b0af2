"""The only remaining node becomes the only voter; its data stays, and others join it."""

from uuid import UUID

import pytest
from tests.kits.quorums import OBSERVES, QuorumCluster, run, until_voter

from ottla.node.quorum_recovery import EPOCHS_SKIPPED, Recoverable, recover_quorum
from ottla.storage.checkpoints import MetaProperties, write_meta_properties
from ottla.storage.directory_identity import WrongDirectory
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.testing.simulator.simulated_node import DATA


def recover(cluster: QuorumCluster, node_id: int, *, change: bool = True) -> Recoverable:
    return recover_quorum(cluster[node_id].disk, DATA, node_id, 0, change=change)


def test_one_of_three_voters_goes_on_and_the_others_come_anew() -> None:
    async def test(cluster: QuorumCluster) -> None:
        nodes = await cluster.form(3)
        await nodes[0].set(7)
        epoch = nodes[0].core.state.epoch
        for node in nodes:
            node.crash()
        found = recover(cluster, 1)
        assert found.voters == (1, 2, 3)
        assert found.epoch >= epoch
        node = await cluster.start(1)
        assert node.leads
        assert node.partitions == "7"
        assert node.core.state.epoch > found.epoch + EPOCHS_SKIPPED
        await node.set(8)
        cluster[2].simulated.lose_directory()
        second = await cluster.start(2)
        await until_voter(second)
        assert second.partitions == "8"

    run(test)


def test_a_node_that_never_voted_can_go_on_too() -> None:
    async def test(cluster: QuorumCluster) -> None:
        first = await cluster.start(1)
        observer = await cluster.start(2)
        await observer.set(7)
        observer.crash()
        first.crash()
        assert recover(cluster, 2).voters == (1,)
        await cluster.start(2)
        assert observer.leads
        assert observer.partitions == "7"

    run(test, **OBSERVES)


def test_an_old_voter_that_comes_back_follows_the_one_that_went_on() -> None:
    async def test(cluster: QuorumCluster) -> None:
        for node in await cluster.form(3):
            node.crash()
        recover(cluster, 1)
        node = await cluster.start(1)
        await node.set(9)
        old = await cluster.start(2, **OBSERVES)
        assert old.partitions == "9"
        assert not old.core.is_voter
        assert node.leads

    run(test)


def test_looking_changes_nothing() -> None:
    async def test(cluster: QuorumCluster) -> None:
        for node in await cluster.form(2):
            node.crash()
        first, second = (recover(cluster, 1, change=False) for _ in range(2))
        assert first == second
        assert first.voters == (1, 2)

    run(test)


def test_what_is_not_the_directory_of_the_node_is_refused() -> None:
    disk = FaultyFilesystem()
    disk.make_directory(DATA)
    with pytest.raises(WrongDirectory, match="/data is not the directory of a node"):
        recover_quorum(disk, DATA, 1, 0, change=True)
    write_meta_properties(disk, DATA, MetaProperties("cluster", 1, str(UUID(int=1))))
    with pytest.raises(WrongDirectory, match="belongs to node 1, not to 2"):
        recover_quorum(disk, DATA, 2, 0, change=True)
    with pytest.raises(WrongDirectory, match="has no metadata"):
        recover_quorum(disk, DATA, 1, 0, change=True)
