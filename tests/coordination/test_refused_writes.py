"""Groups on a coordinator whose log refuses records for a while: too few replicas are in sync."""

import asyncio
from typing import Any

import pytest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.types import GroupId
from tests.groups.kit import duration, subscription
from tests.kits.brokers import Cluster, run
from tests.kits.world import until

from ottla.network.peers import PeerUnreachable
from ottla.protocol.errors import ErrorCode

TOPIC = "__consumer_offsets"
RETRY_S = 0.1
LOADING = {ErrorCode.coordinator_load_in_progress, ErrorCode.coordinator_not_available}
CONFIGS: dict[str, Any] = {"cleanup_policy": "compact", "min_insync_replicas": "2"}


class Client:
    """Joins a group, retrying after retriable errors, as consumers do."""

    def __init__(self, cluster: Cluster, name: str = "client") -> None:
        self._cluster = cluster
        self._name = name
        self.refusals: list[ErrorCode] = []

    async def join_once(self, group: str, member_id: str = "") -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=GroupId(group),
            session_timeout=duration(10_000),
            rebalance_timeout=duration(60_000),
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription("t")),),
        )
        response: JoinGroupResponse = await self._cluster.world.peers.call(
            self._cluster.leader(TOPIC).simulated.address,
            request,
            timeout_ms=120_000,
            purpose=f"join of {self._name}",
        )
        return response

    async def join(self, group: str) -> JoinGroupResponse:
        """Returns its first generation."""
        member_id = ""
        while True:
            response = await self.join_once(group, member_id)
            if response.error_code is ErrorCode.none:
                return response
            if response.error_code is ErrorCode.member_id_required:
                member_id = response.member_id
                continue
            self.refusals.append(response.error_code)
            if response.error_code is ErrorCode.unknown_member_id:
                member_id = ""
            else:
                assert response.error_code in LOADING
                await asyncio.sleep(RETRY_S)


def records_count(cluster: Cluster) -> int:
    return cluster.leader(TOPIC).log(TOPIC).log_end_offset


def test_the_first_join_is_written_before_it_is_answered() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create(TOPIC, replicas=(1, 2), **CONFIGS)
        response = await Client(cluster).join("g")
        assert response.generation_id == 1
        assert records_count(cluster) == 1

    run(test, broker_ids=(1, 2))


def test_a_group_can_be_joined_as_soon_as_enough_replicas_are_in_sync_again() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create(TOPIC, replicas=(1, 2), **CONFIGS)
        await cluster.crash(2)
        await until(lambda: cluster.state(TOPIC).isr == (1,))
        clients = [Client(cluster, f"client {number}") for number in range(3)]
        joins = [asyncio.ensure_future(client.join("g")) for client in clients]
        await until(lambda: all(len(client.refusals) > 20 for client in clients))
        assert records_count(cluster) == 0
        await cluster.restart(2)
        await until(lambda: cluster.state(TOPIC).isr == (1, 2))
        generations = [await join for join in joins]
        assert {each.generation_id for each in generations} == {1}

    run(test, broker_ids=(1, 2))


def test_a_join_does_not_wait_for_followers_that_are_away() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create(TOPIC, replicas=(1, 2), **CONFIGS)
        cluster.cut(1, 2)
        clients = [Client(cluster, f"client {number}") for number in range(3)]
        joins = [asyncio.ensure_future(client.join("g")) for client in clients]
        await until(lambda: records_count(cluster) == 1)
        await cluster.crash(2)
        await until(lambda: all(client.refusals for client in clients))
        assert not any(join.done() for join in joins)
        cluster.heal()
        await cluster.restart(2)
        assert all([(await join).generation_id >= 1 for join in joins])

    run(test, broker_ids=(1, 2))


def test_a_first_join_is_forgotten_with_a_leader_that_nobody_followed() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create(TOPIC, replicas=(1, 2), cleanup_policy="compact")
        cluster.cut(1, 2)
        unanswered = asyncio.ensure_future(Client(cluster).join("g"))
        await until(lambda: records_count(cluster) == 1)
        await cluster.crash(1)
        with pytest.raises(PeerUnreachable):
            await unanswered
        await until(lambda: cluster.state(TOPIC).leader == 2)
        cluster.heal()
        assert (await Client(cluster, "next").join("g")).generation_id == 1

    run(test, broker_ids=(1, 2))
