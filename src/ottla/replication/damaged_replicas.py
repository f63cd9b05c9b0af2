"""Repairs replicas with damaged logs by fetching from the leader again, starting at the damage.

    damaged   the controller is told that the replica has lost its log directory: it no longer leads
              and is neither in sync nor eligible. Refused while no other replica has everything.
    lost      the metadata says so, and another broker leads: the log is truncated at the damage
    copying   the controller is told where the replica is; it catches up like any other

A log is truncated only when no one relies on it any more. While no other replica is in sync, the
intact part of the log is served, and reads of the damaged part are refused.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64

from ottla.controller.directories import LOST, directory_of
from ottla.controller.records import NO_LEADER, PartitionRecord
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import Partition
from ottla.runtime.supervisor import Supervisor
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager

if TYPE_CHECKING:
    from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
    from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse

logger = logging.getLogger(__name__)

_RETRY_FIRST_S: Final = 0.2
_RETRY_MAX_S: Final = 10.0
_JITTER: Final = 0.5  # If replicas are damaged, often many of a node are at once.

Assign = Callable[["AssignReplicasToDirsRequest"], Awaitable["AssignReplicasToDirsResponse"]]

# Truncates the log of a followed partition, and resumes fetching from there.
Truncate = Callable[[Partition, int], Awaitable[None]]


class RepairSettings(NamedTuple):
    node_id: int
    broker_epoch: Callable[[], int]
    random: random.Random


class DamagedReplicas:
    def __init__(
        self,
        settings: RepairSettings,
        logs: LogManager,
        replicas: ReplicaManager,
        assign: Assign,
        truncate: Truncate,
        supervisor: Supervisor,
    ) -> None:
        self._settings = settings
        self._logs = logs
        self._replicas = replicas
        self._assign = assign
        self._truncate = truncate
        self._supervisor = supervisor
        self._repairing: set[PartitionLog] = set()
        self._reported: set[PartitionLog] = set()  # No other replica has what is damaged.

    def look(self) -> None:
        """Called periodically: start the repairs that are possible."""
        for log in self._logs.damaged:
            partition = self._replicas.find_log(log)
            if partition is None or log in self._repairing or self._supervisor.stopped:
                continue
            state = self._replicas.state_of(partition)
            if state is not None and len(state.replicas) > 1:
                self._repairing.add(log)
                self._supervisor.start(f"repair {log.topic_partition}", self._repair(partition))
            elif state is not None:
                self._report(log, "it has no other replica")

    async def _repair(self, partition: Partition) -> None:
        log = partition.log
        waits = self._waits()
        try:
            while log.damage and self._replicas.find_log(log) is partition:
                state = self._replicas.state_of(partition)
                if state is None:
                    return
                if not await self._advance(partition, state):
                    await asyncio.sleep(next(waits))
            await self._return(partition)
        finally:
            self._repairing.discard(log)

    async def _advance(self, partition: Partition, state: PartitionRecord) -> bool:
        """One step; False if it must wait for something."""
        node_id, log = self._settings.node_id, partition.log
        if directory_of(state, node_id) != LOST:
            try:
                await self._assign_directory(log, LOST)
            except ApiError as error:
                if error.code is ErrorCode.eligible_leaders_not_available:
                    self._report(log, "no other replica is in sync")
                return False
            logger.warning("%s is not in sync: its log is damaged", log.topic_partition)
            return False
        if state.leader in (node_id, NO_LEADER):
            return False
        damage = log.damage
        if damage:
            offset = damage[0].first_offset
            logger.warning(
                "%s is fetched again from offset %d on, from broker %d",
                log.topic_partition,
                offset,
                state.leader,
            )
            await self._truncate(partition, offset)
        return not log.damage

    async def _return(self, partition: Partition) -> None:
        """Report the replica's directory until the metadata has it: it can be in sync again."""
        log = partition.log
        directory = self._logs.log_dirs.ids.get(log.log_directory.path)
        waits = self._waits()
        while self._replicas.find_log(log) is partition and not log.damage:
            state = self._replicas.state_of(partition)
            if state is None or directory_of(state, self._settings.node_id) != LOST:
                logger.info("the log of %s is repaired", log.topic_partition)
                return
            try:
                await self._assign_directory(log, directory)
            except ApiError as error:
                logger.info("%s: cannot report its directory: %s", log.topic_partition, error)
            await asyncio.sleep(next(waits))

    def _waits(self) -> Iterator[float]:
        """Waits between attempts, in seconds."""
        wait_s = _RETRY_FIRST_S
        while True:
            yield wait_s * self._settings.random.uniform(1 - _JITTER, 1 + _JITTER)
            wait_s = min(2 * wait_s, _RETRY_MAX_S)

    async def _assign_directory(self, log: PartitionLog, directory: UUID | None) -> None:
        """Tell the controller which directory holds the replica."""
        from kio.schema.assign_replicas_to_dirs.v0.request import (
            AssignReplicasToDirsRequest,
            DirectoryData,
            PartitionData,
            TopicData,
        )

        partition = PartitionData(partition_index=i32(log.topic_partition.partition))
        topic_data = TopicData(topic_id=log.topic_id, partitions=(partition,))
        request = AssignReplicasToDirsRequest(
            broker_id=BrokerId(self._settings.node_id),
            broker_epoch=i64(self._settings.broker_epoch()),
            directories=(DirectoryData(id_=directory, topics=(topic_data,)),),
        )
        response = await self._assign(request)
        codes = [response.error_code] + [
            partition.error_code
            for directory_data in response.directories
            for topic in directory_data.topics
            for partition in topic.partitions
        ]
        for code in codes:
            if code is not ErrorCode.none:
                raise ApiError(code)

    def _report(self, log: PartitionLog, reason: str) -> None:
        if log not in self._reported:
            self._reported.add(log)
            for damage in log.damage:
                logger.error(
                    "%s: offsets %d to %d are damaged and cannot be read, and %s",
                    log.topic_partition,
                    damage.first_offset,
                    damage.next_offset - 1,
                    reason,
                )
