"""Completes transactions whose end is decided: writes their markers, then records the completion.

Each such transaction has one task, until it is complete or another broker coordinates it. A failed
attempt is repeated with increasing delays; a coordinator that was reloaded, here or elsewhere,
starts with the incomplete ones it finds. Repeating a step is harmless.
"""

import asyncio
import logging
from asyncio import Future
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TYPE_CHECKING, Final

from ottla.controller.image import MetadataImage
from ottla.coordination.coordinators import Coordinators
from ottla.machine.transactional import TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.topics import TopicPartition
from ottla.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from ottla.transactions.coordinator import TransactionMachine
    from ottla.transactions.ending import CompleteTransaction, PendingMarkers

logger = logging.getLogger(__name__)

RETRY_FIRST_S: Final = 0.02
RETRY_MAX_S: Final = 2.0

# Writes a marker to the partition's leader, here or elsewhere; returns when it is committed.
WriteMarker = Callable[[TopicPartition, TransactionMarker, int], Awaitable[None]]
# This broker's leader epoch for a partition of `__transaction_state`.
LeaderEpoch = Callable[[int], int]
# Includes the marker: in another coordinator epoch it may belong to another transaction.
Written = set[tuple[TopicPartition, TransactionMarker]]


@dataclass(slots=True, kw_only=True, eq=False)
class TransactionCompletion:
    coordinators: "Coordinators[TransactionMachine]"
    image: MetadataImage
    write_marker: WriteMarker
    leader_epoch: LeaderEpoch
    supervisor: Supervisor
    # Transactional ids that a task must process.
    _decided: set[str] = field(init=False, default_factory=set)
    _running: set[str] = field(init=False, default_factory=set)  # Transactional ids with a task.
    _waiters: dict[str, list[Future[None]]] = field(init=False, default_factory=dict)

    def begin(self, effect: "CompleteTransaction") -> None:
        """The end is decided and committed."""
        transactional_id = effect.transactional_id
        self._decided.add(transactional_id)
        if transactional_id not in self._running and not self.supervisor.stopped:
            self._running.add(transactional_id)
            self.supervisor.start(
                f"complete {transactional_id}", self._complete_all(transactional_id)
            )

    async def wait(self, transactional_id: str, timeout_s: float) -> None:
        """Wait until the transaction is completed, up to this long."""
        if transactional_id not in self._running:
            return
        done = self.supervisor.loop.create_future()
        waiters = self._waiters.setdefault(transactional_id, [])
        waiters.append(done)
        try:
            async with asyncio.timeout(timeout_s):
                await done
        except TimeoutError:
            waiters.remove(done)

    async def _complete_all(self, transactional_id: str) -> None:
        """Nothing can arrive between the last check of what is decided and the end of the task."""
        try:
            while transactional_id in self._decided:
                self._decided.discard(transactional_id)
                await self._complete(transactional_id)
        finally:
            self._running.discard(transactional_id)
            self._release(transactional_id)

    async def _complete(self, transactional_id: str) -> None:
        delay_s = RETRY_FIRST_S
        reported = False
        written: Written = set()
        while True:
            try:
                await self._attempt(transactional_id, written)
                return
            except ApiError as error:
                if error.code is ErrorCode.not_coordinator:
                    return  # The new coordinator finds the transaction incomplete.
                if delay_s >= RETRY_MAX_S and not reported:
                    reported = True
                    logger.warning(
                        "the transaction of %s is not completed yet, retrying: %s",
                        transactional_id,
                        error,
                    )
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, RETRY_MAX_S)

    async def _attempt(self, transactional_id: str, written: Written) -> None:
        runtime = self.coordinators.find(transactional_id)
        pending = await runtime.submit(lambda machine, _: machine.markers_of(transactional_id))
        if pending is None:
            return
        await self._write_markers(transactional_id, pending, written)
        written.clear()  # Once this is recorded, another transaction may have the same marker.
        # Released first, the next transaction begins right behind this end, before a sync of the
        # log can start: one sync covers both, and it does not wait for the end to be synced.
        self._release(transactional_id)
        await runtime.submit(
            lambda machine, now_ms: machine.complete(transactional_id, pending, now_ms)
        )

    async def _write_markers(
        self, transactional_id: str, pending: "PendingMarkers", written: Written
    ) -> None:
        """`written` has the markers that earlier attempts wrote, and receives those of this one."""
        partition = self.coordinators.partition_of(transactional_id)
        assert partition is not None, "a transaction was found, so its topic is there"
        marker = TransactionMarker(
            pending.producer_id,
            pending.producer_epoch,
            self.leader_epoch(partition),
            pending.committed,
        )
        topic_partitions = [
            topic_partition
            for topic_partition in pending.partitions
            if (topic_partition, marker) not in written
        ]
        outcomes = await asyncio.gather(
            *(
                self._write(topic_partition, marker, pending.client_version)
                for topic_partition in topic_partitions
            ),
            return_exceptions=True,
        )
        for topic_partition, outcome in zip(topic_partitions, outcomes, strict=True):
            if outcome is None:
                written.add((topic_partition, marker))
        refusal = next(filter(None, outcomes), None)
        if refusal is not None:
            try:
                raise refusal
            finally:
                del refusal, outcomes  # This frame is in its traceback.

    async def _write(
        self, topic_partition: TopicPartition, marker: TransactionMarker, transaction_version: int
    ) -> None:
        if self.image.partition(*topic_partition) is None:
            return  # The topic was deleted, and the transaction's records with it.
        try:
            await self.write_marker(topic_partition, marker, transaction_version)
        except ApiError as error:
            if error.code is not ErrorCode.invalid_producer_epoch:
                raise
            # Someone else has ended the transaction there, as an administrator can.
            logger.warning("%s has no open transaction for a marker: %s", topic_partition, error)

    def _release(self, transactional_id: str) -> None:
        for waiter in self._waiters.pop(transactional_id, ()):
            if not waiter.done():
                waiter.set_result(None)
