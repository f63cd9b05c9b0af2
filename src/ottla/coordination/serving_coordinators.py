"""Tracks which coordinators on other brokers are known to be serving.

A broker learns from the metadata that it leads a partition of an internal topic, and others may
learn it sooner. A client sent there in between would get NOT_COORDINATOR. So the broker is asked,
once per leadership: the leader of the partition in that epoch is the coordinator.
"""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from ottla.coordination.remote_log_ends import offset_request
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.runtime.other_brokers import AskBroker
from ottla.runtime.supervisor import Supervisor

_EARLIEST = -2


class PartitionLeadership(NamedTuple):
    partition: TopicPartition
    leader: int
    leader_epoch: int


class ServingCoordinators:
    def __init__(self, ask: AskBroker, supervisor: Supervisor) -> None:
        self._ask = ask
        self._supervisor = supervisor
        self._known: dict[TopicPartition, PartitionLeadership] = {}
        self._asking: dict[PartitionLeadership, asyncio.Task[None]] = {}

    def is_known(self, leadership: PartitionLeadership) -> bool:
        return self._known.get(leadership.partition) == leadership

    async def learn(self, leaderships: Iterable[PartitionLeadership]) -> None:
        """Ask about the unknown ones; without an answer they stay unknown."""
        unknown = {leadership: None for leadership in leaderships if not self.is_known(leadership)}
        if unknown:
            await asyncio.wait([self._asked(coordinator) for coordinator in unknown])

    def _asked(self, leadership: PartitionLeadership) -> "asyncio.Task[None]":
        """Shared by many clients that ask at once, as after a broker death."""
        asking = self._asking.get(leadership)
        if asking is None:
            asking = self._supervisor.start(
                f"ask broker {leadership.leader} for {leadership.partition}",
                self._ask_leader(leadership),
            )
            self._asking[leadership] = asking
            asking.add_done_callback(lambda _: self._asking.pop(leadership, None))
        return asking

    async def _ask_leader(self, leadership: PartitionLeadership) -> None:
        request = offset_request(leadership.partition, leadership.leader_epoch, _EARLIEST)
        try:
            response = await self._ask(leadership.leader, request)
        except ApiError:
            return
        ((found,),) = (topic.partitions for topic in response.topics)
        if found.error_code is ErrorCode.none:
            self._known[leadership.partition] = leadership
