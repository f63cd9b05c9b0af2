"""A member of a group by the classic protocol, with the eager range assignor.

It joins, gets its partitions, reads and commits between heartbeats, and gives everything up when
the group rebalances.
"""

import struct
from typing import Any

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.types import GroupId
from kio.static.primitive import i32

from ottla.groups.consumer_protocol import parse_assignment, write_assignment
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import History
from ottla.testing.simulator.clients.client import Client, RefusedError, Unavailable, check
from ottla.testing.simulator.clients.consumption import Consumption
from ottla.testing.simulator.violation import Violation

SESSION_TIMEOUT_MS = 6_000
REBALANCE_TIMEOUT_MS = 8_000
HEARTBEAT_INTERVAL_S = 1.0
PROTOCOL = "range"

_REJOIN = frozenset(
    {
        ErrorCode.rebalance_in_progress,
        ErrorCode.illegal_generation,
        ErrorCode.unknown_member_id,
    }
)


class ClassicMember:
    def __init__(
        self, client: Client, history: History, group: str, partitions: list[TopicPartition]
    ) -> None:
        self._client = client
        self._consumption = Consumption(client, history, group)
        self._partitions = partitions
        self._member_id = ""
        self._generation = -1
        self._heard_at = 0.0  # When the last heartbeat was answered.

    async def run(self) -> None:
        client = self._client
        while not client.stopping:
            try:
                await self._join()
                while not client.stopping:
                    await self._work()
            except Unavailable:
                await client.back_off()
            except RefusedError as error:
                self._on_refusal(error)
        await self._leave()

    async def _work(self) -> None:
        consumption = self._consumption
        if consumption.owned:
            await consumption.poll()
            await consumption.commit(self._member_id, self._generation)
        else:
            await self._client.back_off()
        if self._client.now >= self._heard_at + HEARTBEAT_INTERVAL_S:
            await self._heartbeat()

    def _on_refusal(self, error: RefusedError) -> None:
        if error.code not in _REJOIN:
            raise Violation(f"{self._client.name} was refused with {error}")
        self._client.tell(f"joins again: {error}")
        if error.code is ErrorCode.unknown_member_id:
            self._member_id = ""

    async def _join(self) -> None:
        consumption = self._consumption
        consumption.drop(list(consumption.owned))
        joined = await self._call_join()
        if joined.error_code is ErrorCode.member_id_required:
            self._member_id = joined.member_id
            joined = await self._call_join()
        check(joined.error_code)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignments = self._assign(joined) if joined.leader == joined.member_id else ()
        request = SyncGroupRequest(
            group_id=GroupId(consumption.group),
            generation_id=i32(self._generation),
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=assignments,
        )
        synced = await self._call(request)
        self._heard_at = self._client.now
        self._client.tell(f"is in generation {self._generation} of {consumption.group}")
        for topic, indexes in parse_assignment(synced.assignment).items():
            for index in sorted(indexes):
                partition = TopicPartition(topic, index)
                await consumption.take(partition, self._member_id, self._generation)

    async def _call_join(self) -> Any:
        topic = self._partitions[0].topic.encode()
        subscription = struct.pack(">hih", 0, 1, len(topic)) + topic + struct.pack(">i", -1)
        protocol = JoinGroupRequestProtocol(name=PROTOCOL, metadata=subscription)
        request = JoinGroupRequest(
            group_id=GroupId(self._consumption.group),
            session_timeout=milliseconds(SESSION_TIMEOUT_MS),
            rebalance_timeout=milliseconds(REBALANCE_TIMEOUT_MS),
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=(protocol,),
            reason=None,
        )
        timeout_ms = 2 * REBALANCE_TIMEOUT_MS
        return await self._call(request, ErrorCode.member_id_required, timeout_ms=timeout_ms)

    def _assign(self, joined: Any) -> tuple[SyncGroupRequestAssignment, ...]:
        """Partitions in turn, to members in any order."""
        members = [member.member_id for member in joined.members]
        shares: dict[str, list[int]] = {member: [] for member in members}
        for index, partition in enumerate(self._partitions):
            shares[members[index % len(members)]].append(partition.partition)
        topic = self._partitions[0].topic
        return tuple(
            SyncGroupRequestAssignment(
                member_id=member, assignment=write_assignment(0, {topic: tuple(indexes)})
            )
            for member, indexes in shares.items()
        )

    async def _heartbeat(self) -> None:
        sent_at = self._client.now
        request = HeartbeatRequest(
            group_id=GroupId(self._consumption.group),
            generation_id=i32(self._generation),
            member_id=self._member_id,
            group_instance_id=None,
        )
        response = await self._call(request, ErrorCode.rebalance_in_progress)
        self._heard_at = self._client.now
        self._consumption.confirm(sorted(self._consumption.owned), self._member_id, sent_at)
        check(response.error_code)

    async def _leave(self) -> None:
        self._consumption.drop(list(self._consumption.owned))
        leaving = MemberIdentity(member_id=self._member_id, group_instance_id=None, reason=None)
        request = LeaveGroupRequest(group_id=GroupId(self._consumption.group), members=(leaving,))
        try:
            await self._call(request)
        except (Unavailable, RefusedError) as error:
            self._client.tell(f"leaves without a word: {error}")

    async def _call(self, request: object, *accepted: ErrorCode, **options: int) -> Any:
        async with self._consumption.coordinator() as address:
            response = await self._client.call(address, request, purpose="group", **options)
            if response.error_code not in accepted:
                check(response.error_code)
        return response
