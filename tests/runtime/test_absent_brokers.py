"""Which absent brokers are called, and by whom."""

import asyncio
import selectors
from itertools import pairwise
from typing import Any, cast
from uuid import UUID

from kio.schema.vote.v2.request import VoteRequest
from tests.controller.cluster import Cluster

from ottla.network.peers import PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode
from ottla.raft.messages import VoteResponse
from ottla.raft.quorum import Identity
from ottla.raft.voters import ReplicaKey
from ottla.raft.wire_responses import response_to_wire
from ottla.runtime.absent_brokers import (
    ANSWERED_INTERVAL_MAX_S,
    CALL_INTERVAL_S,
    AbsentBrokers,
)
from ottla.runtime.supervisor import Supervisor

# The host, and the expected cluster and voter.
Called = tuple[str, str | None, int]


class Peers:
    """Nobody answers unless a test says so."""

    def __init__(self, *, answers: bool = False) -> None:
        self.called: list[Called] = []
        self.times_s: list[float] = []
        self.connected: set[Address] = set()
        self._answers = answers

    async def call(
        self,
        address: Address,
        request: VoteRequest,
        *,
        timeout_ms: int,
        purpose: str,
        at_once: bool,
    ) -> object:
        assert at_once
        self.called.append((address.host, request.cluster_id, request.voter_id))
        self.times_s.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        if not self._answers:
            raise PeerUnreachable("not there")
        self.connected.add(address)
        return response_to_wire(VoteResponse(ErrorCode.none, -1, 5))

    def is_connected(self, address: Address, _purpose: str) -> bool:
        return address in self.connected

    def drop(self, address: Address, _purpose: str, _reason: str) -> None:
        self.connected.discard(address)


class Leadership:
    def __init__(self, leader_id: int | None) -> None:
        self.leader_id = leader_id
        self.is_here = leader_id == 1
        self.changed = asyncio.get_running_loop().create_future()


class PatientSelector(selectors.DefaultSelector):
    """Advances time to the loop's next timer."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now_s += timeout or 0.0
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._patient = PatientSelector()
        super().__init__(self._patient)

    def time(self) -> float:
        return self._patient.now_s


def absent_brokers(
    brokers: int, connected: set[int], leadership: Leadership, peers: Peers, supervisor: Supervisor
) -> AbsentBrokers:
    return AbsentBrokers(
        identity=Identity(cluster_id="ours", key=ReplicaKey(1, UUID(int=1))),
        listener_name="PLAINTEXT",
        leadership=cast("Any", leadership),
        image=Cluster(brokers=brokers).image,
        connected=lambda: connected,
        address_of=lambda broker_id: Address(f"node{broker_id}", 9092),
        peers=cast("Any", peers),
        supervisor=supervisor,
        random=lambda: 0.0,
    )


def called_by(leader_id: int | None, connected: set[int], calls: int) -> set[Called]:
    """The brokers that node 1 of three calls, once there are this many calls."""

    async def watch() -> set[Called]:
        loop = asyncio.get_running_loop()
        supervisor, peers = Supervisor(loop, lambda _: None), Peers()
        absent = absent_brokers(3, connected, Leadership(leader_id), peers, supervisor)
        watching = supervisor.start("watch", absent.watch())
        async with asyncio.timeout(120):
            while len(peers.called) < calls:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            if not calls:
                await asyncio.sleep(0)
                assert not watching.done()
        await supervisor.stop()
        return set(peers.called)

    return asyncio.run(watch())


def test_the_controller_calls_on_those_that_send_it_no_heartbeats_again_and_again() -> None:
    assert called_by(1, {2}, calls=3) == {("node3", "ours", 3)}


def test_without_a_controller_everyone_calls_on_all_others() -> None:
    assert called_by(None, {2, 3}, calls=4) == {("node2", "ours", 2), ("node3", "ours", 3)}


def test_who_follows_a_controller_calls_on_nobody() -> None:
    assert called_by(2, set(), calls=0) == set()


def test_one_that_answers_is_called_less_and_less_often_on_one_connection() -> None:
    async def watch() -> tuple[list[float], bool]:
        supervisor = Supervisor(asyncio.get_running_loop(), lambda _: None)
        peers = Peers(answers=True)
        absent = absent_brokers(2, set(), Leadership(None), peers, supervisor)
        supervisor.start("watch", absent.watch())
        await asyncio.sleep(60)
        times_s = list(peers.times_s)
        peers.connected.clear()  # Its process or its machine has died.
        await asyncio.sleep(2 * CALL_INTERVAL_S)
        called_again = len(peers.times_s) > len(times_s)
        await supervisor.stop()
        return times_s, called_again

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        times_s, called_again = runner.run(watch())
    waits_s = [later - earlier for earlier, later in pairwise(times_s)]
    assert sorted(waits_s[:4]) == waits_s[:4]
    assert min(waits_s[4:]) >= ANSWERED_INTERVAL_MAX_S
    assert called_again


def test_nobody_is_connected_to_for_this_once_there_is_a_controller() -> None:
    async def watch() -> tuple[int, int]:
        supervisor = Supervisor(asyncio.get_running_loop(), lambda _: None)
        peers, leadership = Peers(answers=True), Leadership(None)
        absent = absent_brokers(3, set(), leadership, peers, supervisor)
        supervisor.start("watch", absent.watch())
        await asyncio.sleep(10)
        before = len(peers.connected)
        leadership.leader_id = 2
        await asyncio.sleep(1)
        after = len(peers.connected)
        await supervisor.stop()
        return before, after

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(watch()) == (2, 0)
