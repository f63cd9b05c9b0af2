"""Who is called on, and by whom."""

import asyncio
from uuid import UUID

from tests.controller.cluster import Cluster

from ottla.network.peers import PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.raft.quorum import Identity
from ottla.raft.voters import ReplicaKey
from ottla.runtime.absent_brokers import AbsentBrokers
from ottla.runtime.supervisor import Supervisor


class Peers:
    """Nobody answers."""

    def __init__(self):
        self.called = []

    async def call_once(self, address, _key, _version, request, *, timeout_ms):
        self.called.append((address.host, request.cluster_id, request.voter_id))
        await asyncio.sleep(0)
        raise PeerUnreachable("not there")


class Leadership:
    def __init__(self, leader_id):
        self.leader_id = leader_id
        self.is_here = leader_id == 1
        self.changed = asyncio.get_running_loop().create_future()


def called_by(leader_id, connected, calls):
    """The brokers on which node 1 of three calls, as soon as there are so many calls."""

    async def watch():
        loop = asyncio.get_running_loop()
        supervisor, peers = Supervisor(loop, lambda _: None), Peers()
        absent = AbsentBrokers(
            Identity(cluster_id="ours", key=ReplicaKey(1, UUID(int=1))),
            "PLAINTEXT",
            Cluster(brokers=3).image,
            lambda: connected,
            lambda broker_id: Address(f"node{broker_id}", 9092),
            peers,
            supervisor,
            lambda: 0.0,
        )
        watching = supervisor.start("watch", absent.watch(Leadership(leader_id)))
        async with asyncio.timeout(120):
            while len(peers.called) < calls:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            if not calls:
                await asyncio.sleep(0)
                assert not watching.done()
        await supervisor.stop()
        return set(peers.called)

    return asyncio.run(watch())


def test_the_controller_calls_on_those_that_send_it_no_heartbeats_again_and_again():
    assert called_by(1, {2}, calls=3) == {("node3", "ours", 3)}


def test_without_a_controller_everyone_calls_on_all_others():
    assert called_by(None, {2, 3}, calls=4) == {("node2", "ours", 2), ("node3", "ours", 3)}


def test_who_follows_a_controller_calls_on_nobody():
    assert called_by(2, set(), calls=0) == set()
