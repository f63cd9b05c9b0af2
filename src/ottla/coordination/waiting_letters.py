"""Sends dead letters that wait in share-partitions which no consumer reads.

A share-partition is loaded when a consumer fetches it, and the broker that has it loaded sends its
letters. After a change of leaders, or a restart, that may be none. The share coordinator knows
which share-partitions have letters, and periodically has their leaders load them. Another broker is
reminded with a ReadShareGroupStateSummary, which otherwise only a coordinator receives.
"""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Final

from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.coordination.coordinators import Coordinators
from ottla.coordination.share_coordinator import ShareCoordinator
from ottla.coordination.share_partitions import SharePartitions
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareStateMachine
from ottla.protocol.errors import ApiError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.runtime.supervisor import Supervisor

logger = logging.getLogger(__name__)

LOOK_S: Final = 10.0


@dataclass(slots=True, kw_only=True, eq=False)
class WaitingLetters:
    node_id: int
    coordinators: Coordinators[ShareStateMachine]
    partitions: SharePartitions
    image: MetadataImage
    broker_at: Callable[[int], ShareCoordinator]  # Whether it coordinates something or not.
    random: Random
    supervisor: Supervisor

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S * (0.5 + self.random.random()))
            await self.look()

    async def look(self) -> None:
        for runtime in self.coordinators.all():
            try:
                keys = list(runtime.machine.with_waiting_letters())
            except ApiError:
                continue  # It is being loaded.
            for key in keys:
                await self._have_sent(key)

    def on_reminder(self, key: SharePartitionKey) -> None:
        """Its coordinator reports that letters wait in it."""
        self.supervisor.start("waiting dead letters", self._load(key))

    async def _have_sent(self, key: SharePartitionKey) -> None:
        topic = self.image.topic_name(key.topic_id)
        state = None if topic is None else self.image.partition(topic, key.partition)
        if state is None or state.leader == NO_LEADER:
            return
        if state.leader == self.node_id:
            await self._load(key)
            return
        try:
            await self.broker_at(state.leader).read_summary(key)
        except ApiError as error:  # Usually that it does not coordinate this.
            logger.debug("broker %d, of dead letters: %s", state.leader, error)

    async def _load(self, key: SharePartitionKey) -> None:
        """Once loaded, a share-partition sends its letters by itself."""
        try:
            await self.partitions.find(key.group_id, TopicIdPartition(key.topic_id, key.partition))
        except ApiError as error:
            logger.debug("%s, of dead letters: %s", key.coordinator_key, error)
