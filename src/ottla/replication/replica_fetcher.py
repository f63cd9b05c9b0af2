"""Fetches partitions from one leader as a replica: fetch, append, sync, fetch the next.

A fetch offset tells the leader that everything before it is safe here, so with `flush.policy = ack`
appends are synced before they are reported. One sync of each log covers everything in a response.
The loop appends; threads sync and truncate.

A log that diverges from the leader's is truncated to the point of divergence, by the leader's
epochs (KIP-101, KIP-279, KIP-595); one that is out of the leader's range restarts where the
leader's log starts, which may be within a batch. A partition that cannot be fetched is paused; the
others continue. Responses for an epoch that has ended here are dropped, because the metadata brings
the next.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Final, NamedTuple

from ottla.network.peers import PeerUnreachable
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import EpochEndOffset
from ottla.protocol.hot_replica_fetch import (
    ReplicaFetchData,
    ReplicaFetchPosition,
    ReplicaFetchRequest,
    ReplicaFetchResponse,
)
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import read_header
from ottla.records.errors import RecordError
from ottla.replication.partition import Partition
from ottla.replication.replica_fetch_session import ReplicaFetchKey, ReplicaFetchSession
from ottla.replication.throttle import ReplicationThrottle
from ottla.runtime.log_summaries import LogSummaries
from ottla.runtime.supervisor import Supervisor
from ottla.storage.errors import StorageError
from ottla.storage.first_batch import begin_at_first_batches, starts_within
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager

logger = logging.getLogger(__name__)

BACKOFF_FIRST_MS: Final = 20.0
THROTTLED_MAX_MS: Final = 500.0  # Then the throttle is checked again.
APPENDED_BYTES_MAX: Final = 1 << 20  # Appended in one turn of the loop.

_OFFSET_BYTES: Final = 8
_TRUNCATIONS_LOGGED_MAX: Final = 5  # In one round; a failover can cause thousands.

# The leader has forgotten the session, which must be opened again.
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.fetch_session_id_not_found,
        ErrorCode.invalid_fetch_session_epoch,
        ErrorCode.fetch_session_topic_id_error,
    }
)

# Sends to the leader; PeerUnreachable if there is no response.
Exchange = Callable[[ReplicaFetchRequest], Awaitable[ReplicaFetchResponse]]


class FetcherSettings(NamedTuple):
    node_id: int
    wait_max_ms: int
    min_bytes: int
    bytes_max: int  # Per partition.
    response_bytes_max: int
    backoff_max_ms: float


class FetcherTools(NamedTuple):
    """Shared by all fetchers of a broker."""

    broker_epoch: Callable[[], int]
    logs: LogManager
    executor: Executor
    supervisor: Supervisor
    loop: asyncio.AbstractEventLoop
    on_truncated: Callable[[Partition], None]  # Its role can change again.
    throttle: ReplicationThrottle


class _Replica:
    """A partition in one leader epoch."""

    __slots__ = (
        "backoff_ms",
        "follower",
        "is_behind",
        "is_reported",
        "key",
        "leader_epoch",
        "partition",
        "since_request",
    )

    def __init__(self, partition: Partition, key: ReplicaFetchKey, since_request: int) -> None:
        assert partition.follower is not None
        self.partition = partition
        self.follower = partition.follower
        self.key = key
        self.leader_epoch = partition.leader_epoch
        # Responses to earlier requests are void: for another epoch, or for an end truncated since.
        self.since_request = since_request
        self.backoff_ms = BACKOFF_FIRST_MS
        self.is_reported = False  # Operators know that it has not been fetched for a while.
        self.is_behind = False  # It lacks committed records, according to the leader.

    @property
    def is_synced(self) -> bool:
        log = self.partition.log
        return not self.partition.synced_first or log.flushed_offset == log.log_end_offset


class _Changes(NamedTuple):
    """To logs that the leader's records do not continue."""

    truncations: dict[_Replica, int]
    beginnings: dict[_Replica, int]
    first_batches: dict[_Replica, bytes]


class ReplicaFetcher:
    def __init__(
        self, leader_id: int, exchange: Exchange, settings: FetcherSettings, tools: FetcherTools
    ) -> None:
        self.leader_id = leader_id
        self._exchange = exchange
        self._settings = settings
        self._tools = tools
        self._summaries = LogSummaries(tools.loop, logger)
        self._replicas: dict[ReplicaFetchKey, _Replica] = {}
        self._active: dict[ReplicaFetchKey, _Replica] = {}  # The replicas being fetched now.
        self._session = ReplicaFetchSession()
        self._requests_count = 0
        self._in_flight_count = 0
        self._is_interrupting = False
        self._backoff_ms = BACKOFF_FIRST_MS
        self._activated = asyncio.Event()
        self._task = tools.supervisor.start(f"replica fetch from broker {leader_id}", self._run())

    def __len__(self) -> int:
        return len(self._replicas)

    def follow(self, partition: Partition) -> None:
        """Start to follow, or continue in a new epoch."""
        self.unfollow(partition)
        key = key_of(partition)
        replica = self._replicas[key] = _Replica(partition, key, self._requests_count)
        if replica.is_synced and not partition.log.log_directory.is_full:
            self._activate(replica)
        else:
            self._take_up_again(replica)

    def unfollow(self, partition: Partition) -> None:
        key = key_of(partition)
        if self._replicas.pop(key, None) is not None:
            self._active.pop(key, None)
            self._session.forget(key)

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Drop everything from `offset` on, and fetch it again."""
        replica = self._replicas.get(key_of(partition))
        if replica is not None and not partition.is_being_truncated:
            self._pass_over(replica)
            await self._truncate_logs({replica: offset}, self._tools.logs.truncate)

    def close(self) -> None:
        self._replicas.clear()
        self._active.clear()
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            if not self._active and not self._session.has_news:
                self._activated.clear()
                await self._activated.wait()
            if not await self._fetch():
                await asyncio.sleep(self._backoff_ms / 1000)
                self._backoff_ms = min(self._backoff_ms * 2, self._settings.backoff_max_ms)

    async def _fetch(self) -> bool:
        """One request; False if the leader should not be asked again at once."""
        session = self._session
        number, request = self._next_request()
        self._in_flight_count += 1
        try:
            response = await self._exchange(request)
        except PeerUnreachable as error:
            logger.debug("broker %d cannot be fetched from: %s", self.leader_id, error)
            self._reset(session)
            return False
        finally:
            self._in_flight_count -= 1
        if response.error_code:
            self._reset(session)
            return response.error_code in _SESSION_ERRORS
        self._backoff_ms = BACKOFF_FIRST_MS
        if session is self._session and not session.is_open:
            session.on_opened(response.session_id)
        await self._take(number, response)
        return True

    def _reset(self, session: ReplicaFetchSession) -> None:
        """Does nothing if another failed request already did it."""
        if session is self._session:
            self._session = ReplicaFetchSession()

    def _next_request(self) -> tuple[int, ReplicaFetchRequest]:
        session, settings = self._session, self._settings
        self._requests_count += 1
        topics, forgotten = session.take_news(self._active, self._position)
        request = ReplicaFetchRequest(
            settings.node_id,
            self._tools.broker_epoch(),
            settings.wait_max_ms,
            settings.min_bytes,
            settings.response_bytes_max,
            session.id,
            session.epoch,
            topics,
            forgotten,
        )
        session.on_sent()
        return self._requests_count, request

    def _position(self, key: ReplicaFetchKey) -> ReplicaFetchPosition:
        replica = self._active[key]
        log = replica.partition.log
        return ReplicaFetchPosition(
            key[1],
            replica.leader_epoch,
            log.log_end_offset,
            log.leader_epochs.latest_epoch,
            log.log_start_offset,
            self._settings.bytes_max,
        )

    async def _take(self, number: int, response: ReplicaFetchResponse) -> None:
        appended: list[_Replica] = []
        changes = _Changes({}, {}, {})
        size = 0
        for topic_id, partitions in response.topics:
            for data in partitions:
                replica = None if topic_id is None else self._active.get((topic_id, data.partition))
                if replica is None or replica.since_request >= number:
                    continue
                if self._must_change(replica, data, changes):
                    self._pass_over(replica)  # At once: another response may say the same.
                elif data.error_code:
                    self._leave_out(replica, ErrorCode(data.error_code).name)
                elif self._append(replica, data):
                    appended.append(replica)
                    size += len(data.records)
                    if size >= APPENDED_BYTES_MAX:
                        size = 0
                        await asyncio.sleep(0)
        logs = self._tools.logs
        if appended:
            await self._sync(appended)
        if changes.truncations:
            await self._truncate_logs(changes.truncations, logs.truncate)
        if changes.beginnings:
            await self._truncate_logs(changes.beginnings, logs.start_anew)
        if changes.first_batches:
            records = {
                replica.partition.log.topic_partition: batches
                for replica, batches in changes.first_batches.items()
            }
            base_offsets = {
                replica: read_header(batches).base_offset
                for replica, batches in changes.first_batches.items()
            }
            # In one step: for the leader, such a batch begins before its log does.
            await self._truncate_logs(base_offsets, partial(begin_at_first_batches, logs, records))

    def _must_change(self, replica: _Replica, data: ReplicaFetchData, changes: _Changes) -> bool:
        """Whether the log has to be truncated or begun anew first; notes how."""
        log = replica.partition.log
        if data.error_code == ErrorCode.offset_out_of_range:
            changes.beginnings[replica] = data.log_start_offset
        elif data.error_code:
            return False
        elif data.diverging_epoch is not None:
            changes.truncations[replica] = truncation_offset(log, data.diverging_epoch)
        elif starts_within(log, data.records):
            changes.first_batches[replica] = bytes(data.records)
        else:
            return False
        return True

    def _append(self, replica: _Replica, data: ReplicaFetchData) -> bool:
        """Whether the leader must be told of a new end or start offset."""
        partition, follower = replica.partition, replica.follower
        records = data.records
        start = partition.log.log_start_offset
        try:
            if records and not _is_stale(records, partition.log):
                follower.append(records)
            follower.advance_log_start(data.log_start_offset)
        except (ApiError, RecordError) as error:
            if isinstance(error, RecordError) and replica.backoff_ms == BACKOFF_FIRST_MS:
                name, leader = partition.log.topic_partition, self.leader_id
                logger.error("%s: broker %d sent damaged records: %s", name, leader, error)
            self._leave_out(replica, str(error))
            return False
        follower.advance_high_watermark(data.high_watermark)
        replica.is_behind = partition.log.log_end_offset < data.high_watermark
        if records and self._tools.throttle.counts_as_follower(partition):
            self._tools.throttle.follower.spend(len(records))
        replica.backoff_ms = BACKOFF_FIRST_MS
        replica.is_reported = False
        return bool(records) or partition.log.log_start_offset != start

    async def _sync(self, fetched: Iterable[_Replica]) -> None:
        """Sync these replicas; then the leader may be told."""
        logs = {replica: replica.partition.log for replica in fetched}
        unsynced = [replica for replica in fetched if not replica.is_synced]
        if unsynced:
            tools = self._tools
            results = await asyncio.gather(
                *(
                    tools.loop.run_in_executor(tools.executor, logs[replica].flush)
                    for replica in unsynced
                ),
                return_exceptions=True,
            )
            for replica, result in zip(unsynced, results, strict=True):
                if isinstance(result, StorageError | ApiError):
                    self._leave_out(replica, str(result))
                elif isinstance(result, BaseException):
                    raise result
        for replica, log in logs.items():
            if self._replicas.get(replica.key) is not replica:
                continue
            if replica.is_synced:
                self._activate(replica)
            elif replica.partition.log is not log:
                self._take_up_again(replica)  # It moved to another directory meanwhile.

    async def _truncate_logs(
        self,
        truncations: Mapping[_Replica, int],
        work: Callable[[Mapping[TopicPartition, int]], None],
    ) -> None:
        """Truncate in a thread, which nothing interrupts; meanwhile no role changes.

        Roles may have changed earlier, during a sync: a leader's log is never truncated.
        """
        truncations = {
            replica: offset
            for replica, offset in truncations.items()
            if self._replicas.get(replica.key) is replica
        }
        if not truncations:
            return
        offsets = {}
        for replica, offset in truncations.items():
            offsets[replica.partition.log.topic_partition] = offset
            replica.partition.is_being_truncated = True
        self._report_truncations(truncations)
        tools = self._tools
        truncating = tools.loop.run_in_executor(tools.executor, work, offsets)
        done = tools.loop.create_future()
        truncating.add_done_callback(lambda _: self._on_truncated(truncations, truncating, done))
        await done

    def _report_truncations(self, truncations: Mapping[_Replica, int]) -> None:
        """Log each truncation that loses committed records, and a few of the usual ones."""
        usual_count = 0
        for replica, offset in truncations.items():
            log = replica.partition.log
            is_usual = offset >= log.high_watermark
            usual_count += is_usual
            if is_usual and usual_count > _TRUNCATIONS_LOGGED_MAX:
                continue
            logger.log(
                logging.INFO if is_usual else logging.WARNING,
                "%s ends at %d, committed up to %d; it continues from %d of broker %d",
                log.topic_partition,
                log.log_end_offset,
                log.high_watermark,
                offset,
                self.leader_id,
            )
        if usual_count > _TRUNCATIONS_LOGGED_MAX:
            logger.info(
                "%d more logs resume where they agree with broker %d, with all that is committed",
                usual_count - _TRUNCATIONS_LOGGED_MAX,
                self.leader_id,
            )

    def _on_truncated(
        self,
        truncations: Mapping[_Replica, int],
        truncating: "asyncio.Future[None]",
        done: "asyncio.Future[None]",
    ) -> None:
        error = truncating.exception()
        if error is not None and not isinstance(error, StorageError | ApiError):
            if not done.done():
                done.set_exception(error)
            return
        for replica in truncations:
            replica.partition.is_being_truncated = False
            self._tools.on_truncated(replica.partition)
            if self._replicas.get(replica.key) is not replica:
                continue
            replica.since_request = self._requests_count
            if error is None:
                self._activate(replica)
            else:
                self._leave_out(replica, str(error))
        if not done.done():
            done.set_result(None)

    def _activate(self, replica: _Replica) -> None:
        """Send its position with the next request, which goes out at once.

        If the throttle applies, it waits first.
        """
        if replica.partition.is_being_truncated:
            return  # `_on_truncated` continues here.
        throttle = self._tools.throttle
        if replica.is_behind and throttle.counts_as_follower(replica.partition):
            wait_ms = throttle.follower.wait_ms
            if wait_ms:
                self._leave_out_for(replica, min(wait_ms, THROTTLED_MAX_MS))
                return
        self._active[replica.key] = replica
        self._session.change(replica.key)
        self._activated.set()
        if self._in_flight_count and self._session.is_open and not self._is_interrupting:
            self._is_interrupting = True
            self._tools.loop.call_soon(self._interrupt)

    def _interrupt(self) -> None:
        """Another request makes the leader answer the waiting one."""
        self._is_interrupting = False
        supervisor = self._tools.supervisor
        if self._in_flight_count and self._session.has_news and not supervisor.stopped:
            supervisor.start(f"another replica fetch from broker {self.leader_id}", self._fetch())

    def _leave_out(self, replica: _Replica, reason: str) -> None:
        if self._replicas.get(replica.key) is not replica:
            return
        if replica.backoff_ms >= self._settings.backoff_max_ms and not replica.is_reported:
            replica.is_reported = True
            self._summaries.note_partition(
                f"broker {self.leader_id} does not serve fetches now",
                "fetch",
                reason,
                str(replica.partition.log.topic_partition),
                logging.WARNING,
            )
        self._leave_out_for(replica, replica.backoff_ms)
        replica.backoff_ms = min(replica.backoff_ms * 2, self._settings.backoff_max_ms)

    def _leave_out_for(self, replica: _Replica, wait_ms: float) -> None:
        self._pass_over(replica)
        self._tools.loop.call_later(wait_ms / 1000, self._take_up_again, replica)

    def _pass_over(self, replica: _Replica) -> None:
        """Neither request it nor send its position until it is activated again."""
        self._active.pop(replica.key, None)
        self._session.forget(replica.key)

    def _take_up_again(self, replica: _Replica) -> None:
        if self._replicas.get(replica.key) is not replica or self._tools.supervisor.stopped:
            return
        if replica.partition.log.log_directory.is_full:
            self._leave_out_for(replica, self._settings.backoff_max_ms)
        else:
            self._tools.supervisor.start(f"sync {replica.key}", self._sync([replica]))


def key_of(partition: Partition) -> ReplicaFetchKey:
    topic_id = partition.log.topic_id
    assert topic_id is not None, "a partition of a topic has the topic's id"
    return topic_id, partition.log.topic_partition.partition


def truncation_offset(log: PartitionLog, diverging: EpochEndOffset) -> int:
    """The offset to truncate to, given the leader's end of the latest epoch that both may have."""
    epoch, end_offset = log.leader_epochs.end_offset_for(diverging.epoch, log.log_end_offset)
    if epoch == diverging.epoch:
        return min(end_offset, diverging.end_offset)
    if epoch < 0:
        return min(diverging.end_offset, log.log_end_offset)
    return end_offset  # Of an older epoch, which is what the leader is asked about next.


def _is_stale(records: memoryview, log: PartitionLog) -> bool:
    """Whether they were sent again because the leader did not know yet that they are here."""
    return int.from_bytes(records[:_OFFSET_BYTES], "big") < log.log_end_offset
