"""Copies partitions from one leader: fetch, append, sync, fetch on from there.

A fetch offset tells the leader that everything before it is safe here, so with `flush.policy = ack`
what was appended is synced before it is told. One sync of each log covers all that an answer
brought. The loop appends; threads sync and truncate.

A log that leaves the leader's is cut back to where they part, by what the leader says of its epochs
(KIP-101, KIP-279, KIP-595); one that the leader's does not reach begins anew where the leader's
starts. A partition that cannot be copied is left out for a while; the others go on. Whatever the
leader says of an epoch that is over here is dropped, for the metadata brings the next.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import Final, NamedTuple

from ottla.network.peers import PeerUnreachable
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_copy import CopiedData, CopyPosition, CopyRequest, CopyResponse
from ottla.protocol.hot_fetch import EpochEndOffset
from ottla.protocol.topics import TopicPartition
from ottla.records.errors import RecordError
from ottla.replication.copy_session import CopyKey, CopySession
from ottla.replication.partition import Partition
from ottla.replication.throttle import ReplicationThrottle
from ottla.runtime.supervisor import Supervisor
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager

logger = logging.getLogger(__name__)

BACKOFF_FIRST_MS: Final = 20.0
THROTTLED_MAX_MS: Final = 500.0  # Then it is looked whether the throttle is still the same.
APPENDED_BYTES_MAX: Final = 1 << 20  # Appended in one turn of the loop.

_OFFSET_BYTES: Final = 8

# The leader has forgotten the session, which is then opened again.
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.fetch_session_id_not_found,
        ErrorCode.invalid_fetch_session_epoch,
        ErrorCode.fetch_session_topic_id_error,
    }
)

# Asks the leader; PeerUnreachable when there is no answer.
Exchange = Callable[[CopyRequest], Awaitable[CopyResponse]]


class FetcherSettings(NamedTuple):
    node_id: int
    wait_max_ms: int
    min_bytes: int
    bytes_max: int  # Of one partition.
    response_bytes_max: int
    backoff_max_ms: float


class FetcherTools(NamedTuple):
    """What all fetchers of a broker share."""

    broker_epoch: Callable[[], int]
    logs: LogManager
    executor: Executor
    supervisor: Supervisor
    loop: asyncio.AbstractEventLoop
    on_cut: Callable[[Partition], None]  # It can change its role again.
    throttle: ReplicationThrottle


class _Copy:
    """One partition in one leader epoch."""

    __slots__ = (
        "backoff_ms",
        "is_behind",
        "is_told",
        "key",
        "leader_epoch",
        "partition",
        "since_request",
    )

    def __init__(self, partition: Partition, key: CopyKey, since_request: int) -> None:
        self.partition = partition
        self.key = key
        self.leader_epoch = partition.leader_epoch
        # Answers to earlier ones are not for it: they are about another epoch, or an end cut since.
        self.since_request = since_request
        self.backoff_ms = BACKOFF_FIRST_MS
        self.is_told = False  # Operators know that it has not been copied for a while.
        self.is_behind = False  # It lacks what is committed, as the leader has said.

    @property
    def is_synced(self) -> bool:
        log = self.partition.log
        return not self.partition.synced_first or log.flushed_offset == log.log_end_offset


class ReplicaFetcher:
    def __init__(
        self, leader_id: int, exchange: Exchange, settings: FetcherSettings, tools: FetcherTools
    ) -> None:
        self.leader_id = leader_id
        self._exchange = exchange
        self._settings = settings
        self._tools = tools
        self._copies: dict[CopyKey, _Copy] = {}
        self._active: dict[CopyKey, _Copy] = {}  # Those that are fetched now.
        self._session = CopySession()
        self._requests_count = 0
        self._in_flight_count = 0
        self._is_interrupting = False
        self._backoff_ms = BACKOFF_FIRST_MS
        self._activated = asyncio.Event()
        self._task = tools.supervisor.start(f"copy from broker {leader_id}", self._run())

    def __len__(self) -> int:
        return len(self._copies)

    def follow(self, partition: Partition) -> None:
        """From now on, or in a new epoch."""
        self.unfollow(partition)
        key = key_of(partition)
        copy = self._copies[key] = _Copy(partition, key, self._requests_count)
        if copy.is_synced and not partition.log.home.is_full:
            self._activate(copy)
        else:
            self._take_up_again(copy)

    def unfollow(self, partition: Partition) -> None:
        key = key_of(partition)
        if self._copies.pop(key, None) is not None:
            self._active.pop(key, None)
            self._session.forget(key)

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Drop what it has from `offset` on, and copy that again."""
        copy = self._copies.get(key_of(partition))
        if copy is not None and not partition.is_being_cut:
            self._pass_over(copy)
            await self._cut({copy: offset}, self._tools.logs.truncate)

    def close(self) -> None:
        self._copies.clear()
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
        """One request; False when the leader is not to be asked again at once."""
        session = self._session
        number, request = self._next_request()
        self._in_flight_count += 1
        try:
            response = await self._exchange(request)
        except PeerUnreachable as error:
            logger.debug("broker %d cannot be copied from: %s", self.leader_id, error)
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

    def _reset(self, session: CopySession) -> None:
        """Unless another request that failed has done it."""
        if session is self._session:
            self._session = CopySession()

    def _next_request(self) -> tuple[int, CopyRequest]:
        session, settings = self._session, self._settings
        self._requests_count += 1
        topics, forgotten = session.take_news(self._active, self._position)
        request = CopyRequest(
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

    def _position(self, key: CopyKey) -> CopyPosition:
        copy = self._active[key]
        log = copy.partition.log
        return CopyPosition(
            key[1],
            copy.leader_epoch,
            log.log_end_offset,
            log.leader_epochs.latest_epoch,
            log.log_start_offset,
            self._settings.bytes_max,
        )

    async def _take(self, number: int, response: CopyResponse) -> None:
        appended: list[_Copy] = []
        cuts: dict[_Copy, int] = {}
        beginnings: dict[_Copy, int] = {}
        size = 0
        for topic_id, partitions in response.topics:
            for data in partitions:
                copy = None if topic_id is None else self._active.get((topic_id, data.partition))
                if copy is None or copy.since_request >= number:
                    continue
                if data.error_code == ErrorCode.offset_out_of_range:
                    self._pass_over(copy)  # At once: another answer may say the same.
                    beginnings[copy] = data.log_start_offset
                elif data.error_code:
                    self._leave_out(copy, ErrorCode(data.error_code).name)
                elif data.diverging_epoch is not None:
                    self._pass_over(copy)
                    cuts[copy] = cut_offset(copy.partition.log, data.diverging_epoch)
                elif self._append(copy, data):
                    appended.append(copy)
                    size += len(data.records)
                    if size >= APPENDED_BYTES_MAX:
                        size = 0
                        await asyncio.sleep(0)
        if appended:
            await self._sync(appended)
        if cuts:
            await self._cut(cuts, self._tools.logs.truncate)
        if beginnings:
            await self._cut(beginnings, self._tools.logs.start_anew)

    def _append(self, copy: _Copy, data: CopiedData) -> bool:
        """Whether the leader is to be told of a new end, or a new start."""
        partition = copy.partition
        records = data.records
        start = partition.log.log_start_offset
        try:
            if records and not _is_stale(records, partition.log):
                partition.append_copied(records)
            partition.follow_log_start(data.log_start_offset)
        except (ApiError, RecordError) as error:
            if isinstance(error, RecordError) and copy.backoff_ms == BACKOFF_FIRST_MS:
                place, leader = partition.log.topic_partition, self.leader_id
                logger.error("%s: broker %d sent damaged records: %s", place, leader, error)
            self._leave_out(copy, str(error))
            return False
        partition.follow_high_watermark(data.high_watermark)
        copy.is_behind = partition.log.log_end_offset < data.high_watermark
        if records and self._tools.throttle.counts_as_follower(partition):
            self._tools.throttle.follower.spend(len(records))
        copy.backoff_ms = BACKOFF_FIRST_MS
        copy.is_told = False
        return bool(records) or partition.log.log_start_offset != start

    async def _sync(self, copies: Iterable[_Copy]) -> None:
        """Sync what these have; then the leader may be told of it."""
        unsynced = [copy for copy in copies if not copy.is_synced]
        if unsynced:
            tools = self._tools
            results = await asyncio.gather(
                *(
                    tools.loop.run_in_executor(tools.executor, copy.partition.log.flush)
                    for copy in unsynced
                ),
                return_exceptions=True,
            )
            for copy, result in zip(unsynced, results, strict=True):
                if isinstance(result, StorageError | ApiError):
                    self._leave_out(copy, str(result))
                elif isinstance(result, BaseException):
                    raise result
        for copy in copies:
            if copy.is_synced and self._copies.get(copy.key) is copy:
                self._activate(copy)

    async def _cut(
        self, cuts: Mapping[_Copy, int], work: Callable[[Mapping[TopicPartition, int]], None]
    ) -> None:
        """In a thread, which nothing ends once it has begun; meanwhile no role changes.

        Roles may have changed before, while others were synced: a leader's log is never cut.
        """
        cuts = {copy: offset for copy, offset in cuts.items() if self._copies.get(copy.key) is copy}
        if not cuts:
            return
        offsets = {}
        for copy, offset in cuts.items():
            log = copy.partition.log
            offsets[log.topic_partition] = offset
            copy.partition.is_being_cut = True
            logger.log(
                logging.WARNING if offset < log.high_watermark else logging.INFO,
                "%s ends at %d, committed up to %d; it goes on from %d of broker %d",
                log.topic_partition,
                log.log_end_offset,
                log.high_watermark,
                offset,
                self.leader_id,
            )
        tools = self._tools
        cutting = tools.loop.run_in_executor(tools.executor, work, offsets)
        done = tools.loop.create_future()
        cutting.add_done_callback(lambda _: self._on_cut(cuts, cutting, done))
        await done

    def _on_cut(
        self,
        cuts: Mapping[_Copy, int],
        cutting: "asyncio.Future[None]",
        done: "asyncio.Future[None]",
    ) -> None:
        error = cutting.exception()
        if error is not None and not isinstance(error, StorageError | ApiError):
            if not done.done():
                done.set_exception(error)
            return
        for copy in cuts:
            copy.partition.is_being_cut = False
            self._tools.on_cut(copy.partition)
            if self._copies.get(copy.key) is not copy:
                continue
            copy.since_request = self._requests_count
            if error is None:
                self._activate(copy)
            else:
                self._leave_out(copy, str(error))
        if not done.done():
            done.set_result(None)

    def _activate(self, copy: _Copy) -> None:
        """Its position is told with the next request, which goes out at once.

        Unless the throttle is to be waited for.
        """
        if copy.partition.is_being_cut:
            return  # `_on_cut` comes back here.
        throttle = self._tools.throttle
        if copy.is_behind and throttle.counts_as_follower(copy.partition):
            wait_ms = throttle.follower.wait_ms
            if wait_ms:
                self._leave_out_for(copy, min(wait_ms, THROTTLED_MAX_MS))
                return
        self._active[copy.key] = copy
        self._session.change(copy.key)
        self._activated.set()
        if self._in_flight_count and self._session.is_open and not self._is_interrupting:
            self._is_interrupting = True
            self._tools.loop.call_soon(self._interrupt)

    def _interrupt(self) -> None:
        """The leader answers the request that waits when it gets another one."""
        self._is_interrupting = False
        supervisor = self._tools.supervisor
        if self._in_flight_count and self._session.has_news and not supervisor.stopped:
            supervisor.start(f"copy more from broker {self.leader_id}", self._fetch())

    def _leave_out(self, copy: _Copy, reason: str) -> None:
        if self._copies.get(copy.key) is not copy:
            return
        if copy.backoff_ms >= self._settings.backoff_max_ms and not copy.is_told:
            copy.is_told = True
            logger.warning(
                "%s is not copied from broker %d now: %s",
                copy.partition.log.topic_partition,
                self.leader_id,
                reason,
            )
        self._leave_out_for(copy, copy.backoff_ms)
        copy.backoff_ms = min(copy.backoff_ms * 2, self._settings.backoff_max_ms)

    def _leave_out_for(self, copy: _Copy, wait_ms: float) -> None:
        self._pass_over(copy)
        self._tools.loop.call_later(wait_ms / 1000, self._take_up_again, copy)

    def _pass_over(self, copy: _Copy) -> None:
        """It is not asked for, nor is its position told, until it is activated again."""
        self._active.pop(copy.key, None)
        self._session.forget(copy.key)

    def _take_up_again(self, copy: _Copy) -> None:
        if self._copies.get(copy.key) is not copy or self._tools.supervisor.stopped:
            return
        if copy.partition.log.home.is_full:
            self._leave_out_for(copy, self._settings.backoff_max_ms)
        else:
            self._tools.supervisor.start(f"sync {copy.key}", self._sync([copy]))


def key_of(partition: Partition) -> CopyKey:
    topic_id = partition.log.topic_id
    assert topic_id is not None, "a partition of a topic has the topic's id"
    return topic_id, partition.log.topic_partition.partition


def cut_offset(log: PartitionLog, diverging: EpochEndOffset) -> int:
    """Where a log is to be cut whose leader ends this epoch, the latest one that both may have."""
    epoch, end_offset = log.leader_epochs.end_offset_for(diverging.epoch, log.log_end_offset)
    if epoch == diverging.epoch:
        return min(end_offset, diverging.end_offset)
    if epoch < 0:
        return min(diverging.end_offset, log.log_end_offset)
    return end_offset  # Of an older epoch, of which the leader is asked next.


def _is_stale(records: memoryview, log: PartitionLog) -> bool:
    """Sent again because the leader did not know yet that they are here."""
    return int.from_bytes(records[:_OFFSET_BYTES], "big") < log.log_end_offset
