"""The only node that is left votes alone; what is on its disk stays, and others join it."""

from uuid import UUID

import pytest
from tests.node.quorum_kit import CLUSTER_ID, until, until_voter
from tests.node.test_quorum import run

from ottla.node.quorum_recovery import EPOCHS_SKIPPED, recover_quorum
from ottla.storage.checkpoints import MetaProperties, write_meta_properties
from ottla.storage.directory_identity import WrongDirectory
from ottla.storage.faulty_filesystem import FaultyFilesystem


def recover(cluster, node_id, *, change=True):
    disk = cluster.disks[node_id]
    meta = MetaProperties(CLUSTER_ID, node_id, str(UUID(int=node_id)))
    write_meta_properties(disk, "/data", meta)
    return recover_quorum(disk, "/data", node_id, 0, change=change)


def test_one_of_three_voters_goes_on_and_the_others_come_anew():
    async def test(cluster):
        await cluster.form(3)
        await cluster.nodes[1].set(7)
        epoch = cluster.nodes[1].core.state.epoch
        for node_id in (1, 2, 3):
            await cluster.nodes[node_id].stop()
        found = recover(cluster, 1)
        assert found.voters == (1, 2, 3)
        assert found.epoch >= epoch
        node = await cluster.start(1)
        await until(lambda: node.leads)
        assert node.partitions == "7"
        assert node.core.state.epoch > found.epoch + EPOCHS_SKIPPED
        await node.set(8)
        del cluster.disks[2], cluster.disks[3]
        second = await cluster.start(2)
        await until_voter(second)
        await until(lambda: second.partitions == "8")

    run(test)


def test_a_node_that_never_voted_can_go_on_too():
    async def test(cluster):
        first = await cluster.start(1)
        await first.set(7)
        observer = await cluster.start(2)
        await until(lambda: observer.partitions == "7")
        await observer.stop()
        await first.stop()
        assert recover(cluster, 2).voters == (1,)
        node = await cluster.start(2)
        await until(lambda: node.leads)
        assert node.partitions == "7"

    run(test)


def test_an_old_voter_that_comes_back_follows_the_one_that_went_on():
    async def test(cluster):
        await cluster.form(3)
        for node_id in (1, 2, 3):
            await cluster.nodes[node_id].stop()
        recover(cluster, 1)
        node = await cluster.start(1)
        await node.set(9)
        old = await cluster.start(2)
        await until(lambda: old.partitions == "9")
        assert not old.core.is_voter

    run(test)


def test_looking_changes_nothing():
    async def test(cluster):
        await cluster.form(2)
        for node_id in (1, 2):
            await cluster.nodes[node_id].stop()
        first, second = (recover(cluster, 1, change=False) for _ in range(2))
        assert first == second
        assert first.voters == (1, 2)

    run(test)


def test_what_is_not_the_directory_of_the_node_is_refused():
    disk = FaultyFilesystem()
    disk.make_directory("/data")
    with pytest.raises(WrongDirectory, match="/data is not the directory of a node"):
        recover_quorum(disk, "/data", 1, 0, change=True)
    write_meta_properties(disk, "/data", MetaProperties(CLUSTER_ID, 1, str(UUID(int=1))))
    with pytest.raises(WrongDirectory, match="belongs to node 1, not to 2"):
        recover_quorum(disk, "/data", 2, 0, change=True)
    with pytest.raises(WrongDirectory, match="has no metadata"):
        recover_quorum(disk, "/data", 1, 0, change=True)
