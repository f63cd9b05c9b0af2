"""A member of a consumer group by the protocol of KIP-848.

Heartbeats go on by themselves. The target that they bring is followed between two polls: what is to
be given up is committed and dropped, and then said to be gone; what is new is taken.
"""

import asyncio
from typing import Any
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32

from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import in_milliseconds, milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import History
from ottla.testing.simulator.clients.client import Client, RefusedError, Unavailable, check
from ottla.testing.simulator.clients.consumption import Consumption
from ottla.testing.simulator.violation import Violation

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
REBALANCE_TIMEOUT_MS = 5_000

_FENCED = frozenset({ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch})
_BEHIND = frozenset({ErrorCode.stale_member_epoch})


class ConsumerMember:
    def __init__(self, client: Client, history: History, group: str, topic: str) -> None:
        self._client = client
        self._consumption = Consumption(client, history, group)
        self._topic = topic
        self._member_id = str(UUID(int=client.chance.getrandbits(128), version=4))
        self._epoch = JOIN_EPOCH
        self._interval_s = 1.0
        self._target: frozenset[TopicPartition] = frozenset()
        self._reported: frozenset[TopicPartition] | None = None  # What the coordinator knows.

    async def run(self) -> None:
        client = self._client
        heartbeats = client.process.create_task(self._keep_alive())
        try:
            while not client.stopping:
                if heartbeats.done():
                    heartbeats.result()
                await self._work()
        finally:
            heartbeats.cancel()
        await self._leave()

    async def _work(self) -> None:
        consumption, epoch = self._consumption, self._epoch
        try:
            await self._follow_target()
            if consumption.owned:
                await consumption.poll()
                if self._epoch == epoch:
                    await consumption.commit(self._member_id, epoch)
            else:
                await self._client.back_off()
        except Unavailable:
            await self._client.back_off()
        except RefusedError as error:
            self._on_refusal(error, epoch)
            await self._client.back_off()

    async def _follow_target(self) -> None:
        consumption = self._consumption
        lost = consumption.owned.keys() - self._target
        if lost:
            epoch = self._epoch
            try:
                await consumption.commit(self._member_id, epoch)
            except (Unavailable, RefusedError) as error:
                self._client.tell(f"gives up partitions without a commit: {error}")
            consumption.drop(sorted(lost & consumption.owned.keys()))
        for partition in sorted(self._target - consumption.owned.keys()):
            if partition in self._target:
                await consumption.take(partition, self._member_id, self._epoch)
                if partition not in self._target:
                    consumption.drop([partition])

    def _on_refusal(self, error: RefusedError, epoch: int) -> None:
        """A request with an old epoch; or the coordinator has forgotten this member."""
        if error.code in _FENCED and epoch == self._epoch:
            self._begin_again(error)
        elif error.code not in _FENCED | _BEHIND:
            raise Violation(f"{self._client.name} was refused with {error}")

    def _begin_again(self, error: RefusedError) -> None:
        self._client.tell(f"is fenced: {error}")
        self._consumption.drop(list(self._consumption.owned))
        self._epoch = JOIN_EPOCH
        self._target = frozenset()
        self._reported = None

    async def _keep_alive(self) -> None:
        while True:
            epoch = self._epoch
            try:
                await self._heartbeat(epoch)
            except Unavailable:
                self._reported = None
                await self._client.back_off()
            except RefusedError as error:
                self._on_refusal(error, epoch)
                await self._client.back_off()
            else:
                await asyncio.sleep(self._interval_s)

    async def _heartbeat(self, epoch: int) -> None:
        consumption = self._consumption
        topic_id = await self._client.topic_id(self._topic)
        owned = frozenset(consumption.owned)
        sent_at = self._client.now
        request = self._request(epoch, topic_id, owned if owned != self._reported else None)
        response = await self._call(request)
        self._reported = owned
        if epoch > JOIN_EPOCH:
            consumption.confirm(sorted(owned), self._member_id, sent_at)
        if response.member_epoch != self._epoch:
            self._client.tell(f"is in epoch {response.member_epoch} of {consumption.group}")
        self._epoch = response.member_epoch
        self._interval_s = in_milliseconds(response.heartbeat_interval) / 1000
        if response.assignment is not None:
            self._target = frozenset(
                TopicPartition(self._client.topic_names[each.topic_id], index)
                for each in response.assignment.topic_partitions
                for index in each.partitions
            )

    def _request(
        self, epoch: int, topic_id: UUID, owned: frozenset[TopicPartition] | None
    ) -> ConsumerGroupHeartbeatRequest:
        """All is said when it joins; later only what has changed."""
        joins = epoch == JOIN_EPOCH
        whole = joins or owned is not None
        indexes = tuple(i32(index) for _, index in sorted(owned or ()))
        return ConsumerGroupHeartbeatRequest(
            group_id=GroupId(self._consumption.group),
            member_id=self._member_id,
            member_epoch=i32(epoch),
            instance_id=None,
            rack_id=None,
            rebalance_timeout=milliseconds(REBALANCE_TIMEOUT_MS if whole else -1),
            subscribed_topic_names=(TopicName(self._topic),) if whole else None,
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=(
                (TopicPartitions(topic_id=topic_id, partitions=indexes),)
                if indexes
                else (() if whole else None)
            ),
        )

    async def _leave(self) -> None:
        self._consumption.drop(list(self._consumption.owned))
        try:
            topic_id = await self._client.topic_id(self._topic)
            await self._call(self._request(LEAVE_EPOCH, topic_id, None))
        except (Unavailable, RefusedError) as error:
            self._client.tell(f"leaves without a word: {error}")

    async def _call(self, request: ConsumerGroupHeartbeatRequest) -> Any:
        async with self._consumption.coordinator() as address:
            response = await self._client.call(address, request, purpose="heartbeat")
            check(response.error_code)
        return response
