"""Moves replicas from one log directory of this broker to another (KIP-113).

Threads copy; when almost nothing is left, one turn of the event loop copies the rest and swaps in
the new log. So no append is delayed or missed. For what a move leaves on disk at each moment, and
what a crash makes of it, see `storage.future_logs`.

A request is done when a power loss cannot undo it: a restart resumes what was begun and knows
nothing of what was cancelled.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, TypeVar

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.errors import RecordError
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import Partition
from ottla.runtime.process import Process
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog
from ottla.storage.log_move import LogMove
from ottla.storage.manager import LogManager

logger = logging.getLogger(__name__)

RETRY_S: Final = 0.05
FULL_RETRY_S: Final = 1.0
THROTTLED_MAX_S: Final = 0.5  # Then the throttle is checked again: its rate may have changed.

_T = TypeVar("_T")


class DirectoryMoves:
    def __init__(self, logs: LogManager, replicas: ReplicaManager, process: Process) -> None:
        self.on_moved: Callable[[TopicPartition], object] = lambda _: None
        self._logs = logs
        self._replicas = replicas
        self._process = process
        self._beginnings: dict[PartitionLog, asyncio.Future[int]] = {}  # Not synced yet.

    async def request(self, topic_partition: TopicPartition, path: str) -> None:
        """Start moving a replica unless it is there; cancels a move to another directory."""
        self._request(topic_partition, path)
        future = self._logs.futures.all.get(topic_partition)
        beginning = None if future is None else self._beginnings.get(future)
        try:
            if beginning is not None:
                await asyncio.shield(beginning)
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        await self._in_thread(self._logs.log_dirs.sync_partitions)

    def _request(self, topic_partition: TopicPartition, path: str) -> None:
        futures = self._logs.futures
        futures.validate_name(topic_partition)
        log_directory = futures.find_directory(path)
        future = futures.all.get(topic_partition)
        if future is not None and future.log_directory is not log_directory:
            futures.discard(topic_partition)
            future = None
        try:
            partition = self._replicas.find_readable(*topic_partition)
        except ApiError as error:
            if error.code is ErrorCode.kafka_storage_error:
                raise
            futures.wish(topic_partition, log_directory)
            if error.code is ErrorCode.not_leader_or_follower:
                raise ApiError(
                    ErrorCode.replica_not_available, f"{topic_partition} is not on this broker"
                ) from error
            raise
        if future is None and partition.log.log_directory is not log_directory:
            try:
                self._start(partition, futures.create(partition.log, log_directory))
            except StorageError as error:
                raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error

    def resume(self) -> None:
        """After a start: resume the moves that were begun before."""
        for topic_partition, future in list(self._logs.futures.all.items()):
            try:
                partition = self._replicas.find_readable(*topic_partition)
            except ApiError:
                continue
            self._start(partition, future)

    def _start(self, partition: Partition, future: PartitionLog) -> None:
        move = LogMove(partition.log, future)
        self._beginnings[future] = beginning = self._in_thread(future.flush)
        beginning.add_done_callback(lambda _: self._beginnings.pop(future))
        name = f"move {future.topic_partition} to {future.log_directory.path}"
        self._process.supervisor.start(name, self._run(partition, move, beginning))

    async def _run(
        self, partition: Partition, move: LogMove, beginning: "asyncio.Future[int]"
    ) -> None:
        future, topic_partition = move.future, move.future.topic_partition
        logger.info("%s moves to %s", move.source.directory, future.log_directory.path)
        try:
            await asyncio.shield(beginning)
            if self._is_current(partition, move):
                await self._in_thread(self._logs.settle, future.log_directory)
            while self._is_current(partition, move):
                if await self._advance(partition, move):
                    await self._replace(partition, move)
                    return
        except (ApiError, StorageError, RecordError) as error:
            if not self._is_current(partition, move):
                return
            logger.warning(
                "%s stays in %s: %s", topic_partition, move.source.log_directory.path, error
            )
            if move.source.log_directory.failure or future.log_directory.failure:
                del self._logs.futures.all[topic_partition]  # The next start finds it again.
            else:
                self._logs.futures.discard(topic_partition)

    def _is_current(self, partition: Partition, move: LogMove) -> bool:
        """Whether the move was not cancelled and its replica is still there."""
        future = self._logs.futures.all.get(move.future.topic_partition)
        return future is move.future and partition.log is move.source

    async def _advance(self, partition: Partition, move: LogMove) -> bool:
        """One step; True if the new log has everything at this moment."""
        quota = self._replicas.throttle.directory_moves
        wait_ms = quota.wait_ms
        if wait_ms:
            await asyncio.sleep(min(wait_ms / 1000, THROTTLED_MAX_S))
            return False
        try:
            size = await self._in_thread(move.advance)
        except ApiError:
            if not move.future.log_directory.is_full:
                raise
            await asyncio.sleep(FULL_RETRY_S)
            return False
        quota.spend(size)
        if size or not self._is_current(partition, move):
            return False
        if not partition.is_being_truncated and move.finish():
            return True
        await asyncio.sleep(RETRY_S)
        return False

    async def _replace(self, partition: Partition, move: LogMove) -> None:
        """The new log takes over in this turn of the loop; then it is synced, the old retired."""
        future = move.future
        former = self._logs.promote(future)
        partition.take_log(future)
        await self._in_thread(future.flush)
        await self._in_thread(self._logs.settle, future.log_directory)
        self._logs.retire(former)
        await self._in_thread(self._logs.settle, former.log_directory)
        self.on_moved(future.topic_partition)
        logger.info("%s has moved to %s", future.topic_partition, future.log_directory.path)

    def _in_thread(self, work: Callable[..., _T], *arguments: object) -> "asyncio.Future[_T]":
        return self._process.loop.run_in_executor(self._process.executor, work, *arguments)
