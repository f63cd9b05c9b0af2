"""Prunes what `__share_group_state` no longer needs.

Its records are changes of share-partitions, where a later one does not replace an earlier one. So
the whole state of every share-partition is rewritten periodically, and everything before those
records is deleted. Nothing is deleted until they are committed.
"""

import asyncio
import logging
from functools import partial
from typing import Final

from ottla.coordination.coordinators import Coordinators
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareStateMachine
from ottla.machine.catalog import TopicCatalog
from ottla.protocol.errors import ApiError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.replication.manager import ReplicaManager
from ottla.runtime.machine_runtime import MachineRuntime
from ottla.runtime.process import Process
from ottla.storage.errors import StorageError

logger = logging.getLogger(__name__)

RECORDS_MIN: Final = 1_000  # Fewer are not worth it.
_STATES_PER_BATCH: Final = 10  # Each can take some ten thousand bytes.


@dataclass(slots=True, kw_only=True, eq=False)
class ShareStatePruning:
    coordinators: Coordinators[ShareStateMachine]
    replicas: ReplicaManager
    catalog: TopicCatalog
    interval_ms: int
    process: Process

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.interval_ms / 1000)
            for index in range(self.catalog.partition_count(self.coordinators.topic) or 0):
                try:
                    await self.prune(index)
                except (ApiError, StorageError) as error:
                    logger.debug("share-group state %d is not pruned: %s", index, error)

    async def prune(self, index: int, records_min: int = RECORDS_MIN) -> None:
        """ApiError if the coordinator is not here, or not ready."""
        runtime = self.coordinators.at(index)
        log = self.replicas.find(self.coordinators.topic, index).log
        if log.log_end_offset - log.log_start_offset < records_min:
            return
        start_offset = runtime.next_offset
        share_partitions = list(runtime.machine.share_partitions())
        for first in range(0, max(len(share_partitions), 1), _STATES_PER_BATCH):
            chosen = share_partitions[first : first + _STATES_PER_BATCH]
            await runtime.submit(partial(ShareStateMachine.rewrite, share_partitions=chosen))
            for share_partition in chosen:
                await self._rewrite_parked(runtime, share_partition)
        await self.process.in_thread(log.delete_records_before, start_offset)

    async def _rewrite_parked(
        self, runtime: MachineRuntime[ShareStateMachine], share_partition: SharePartitionKey
    ) -> None:
        first: int | None = 0
        while first is not None:
            page = partial(
                ShareStateMachine.rewrite_parked,
                share_partition=share_partition,
                first_offset=first,
            )
            first = await runtime.submit(page)
