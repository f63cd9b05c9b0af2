"""What followers fetch from the partitions that this broker leads.

A follower names its partitions once, and later only the changes (KIP-227). Its session lives as
long as its connection. Each partition notifies the sessions that fetch it of news, so that the cost
of a fetch depends on what is new and not on the number of partitions.

A fetch offset says that the follower has everything before it, which is what advances the high
watermark, but only if the epoch sent with it matches this log at that offset. A follower whose log
differs is told where it diverges.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import FetchedPartition, FetchRequest, PartitionData, RecordsSlice
from ottla.protocol.lazy_dataclass import dataclass
from ottla.replication.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    WantedKey,
    each_partition,
    next_epoch,
)
from ottla.replication.followers import FollowerFetch
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import Partition
from ottla.replication.partition_leader import PartitionLeader
from ottla.runtime.process import Process
from ottla.storage.errors import NotCached
from ottla.storage.reading import LogSlice

PROGRESS_DELAY_S: Final = 0.01  # The longest delay before news of commits is sent without records.


class FollowerAnswer(NamedTuple):
    error_code: int
    session_id: int
    partitions: list[tuple[str | UUID, PartitionData]]


Respond = Callable[[FollowerAnswer], None]


@dataclass(slots=True, eq=False)
class _ReplicaFetch:
    """A partition as fetched by a follower."""

    session: "FollowerSession"
    key: WantedKey
    asked: FetchedPartition
    is_asked_anew: bool = True
    partition: Partition | None = None  # It notifies this of news.
    sent_high_watermark: int = -1
    sent_log_start_offset: int = -1

    def on_news(self, only_of_progress: bool) -> None:
        self.session.on_news(self, only_of_progress)

    def attach(self, partition: Partition) -> None:
        if partition is not self.partition:
            self.detach()
            self.partition = partition
            partition.listen_to_appends(self.on_news)

    def detach(self) -> None:
        if self.partition is not None:
            self.partition.forget_listener(self.on_news)
            self.partition = None

    def is_news(self, data: PartitionData) -> bool:
        return (
            data.records is not None
            or data.error_code != 0
            or data.diverging_epoch is not None
            or data.high_watermark != self.sent_high_watermark
            or data.log_start_offset != self.sent_log_start_offset
        )

    def is_unsettled(self, data: PartitionData) -> bool:
        """Whether there is more to send, as of the last look."""
        partition = self.partition
        return (
            self.is_news(data)
            or partition is None
            or partition.log.log_end_offset > self.asked.fetch_offset
        )


class _Waiting(NamedTuple):
    """The fetch being served."""

    min_bytes: int
    max_bytes: int
    respond: Respond


_Outcome = list[tuple[_ReplicaFetch, PartitionData]]


class FollowerSession:
    """A follower on one connection; it has at most one fetch at a time."""

    def __init__(
        self,
        session_id: int,
        replica_id: int,
        broker_epoch: int,
        led: ReplicaManager,
        process: Process,
    ) -> None:
        self.id = session_id  # 0: it ends with its first response.
        self.epoch = INITIAL_EPOCH
        self._replica_id = replica_id
        self._broker_epoch = broker_epoch
        self._led = led
        self._process = process
        self._loop = process.loop
        self._fetches: dict[WantedKey, _ReplicaFetch] = {}
        # Fetches that may have news; the longest unserved one first.
        self._unsettled: dict[WantedKey, _ReplicaFetch] = {}
        self._waiting: _Waiting | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._progress_timer: asyncio.TimerHandle | None = None
        self._throttle_timer: asyncio.TimerHandle | None = None
        self._is_scheduled = False

    def fetch(
        self, request: FetchRequest, bytes_max: int, *, by_id: bool, respond: Respond
    ) -> None:
        """Answer at once if there are records or errors, else when they arrive or time is up."""
        if self._waiting is not None:
            self._answer([])  # A follower that does not wait for its response gets nothing new.
        self._update(request, by_id=by_id)
        self._waiting = _Waiting(request.min_bytes, min(request.max_bytes, bytes_max), respond)
        self._look(partial(self._answer_or_wait, request.max_wait_ms))

    def close(self) -> None:
        """No one waits for the answer any more."""
        self._stop_waiting()
        for fetch in self._fetches.values():
            fetch.detach()
        self._fetches.clear()
        self._unsettled.clear()

    def on_news(self, fetch: _ReplicaFetch, only_of_progress: bool) -> None:
        self._unsettled[fetch.key] = fetch
        if self._waiting is None:
            return
        if not only_of_progress:
            self._look_soon()
        else:
            self._answer_before_long()

    def _answer_before_long(self) -> None:
        if self._progress_timer is None:
            self._progress_timer = self._loop.call_later(PROGRESS_DELAY_S, self._on_time_up)

    def _update(self, request: FetchRequest, *, by_id: bool) -> None:
        for topic, asked in each_partition(request.topics, by_id=by_id):
            key = (topic, asked.partition)
            fetch = self._fetches.get(key)
            if fetch is None:
                fetch = self._fetches[key] = _ReplicaFetch(self, key, asked)
            else:
                fetch.asked = asked
                fetch.is_asked_anew = True
            self._unsettled[key] = fetch
        for key in each_partition(request.forgotten, by_id=by_id):
            forgotten = self._fetches.pop(key, None)
            if forgotten is not None:
                self._note_absence(forgotten.partition)
                forgotten.detach()
                self._unsettled.pop(key, None)

    def _look_soon(self) -> None:
        """Handle all news of one turn of the loop at once."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._is_scheduled = False
        if self._waiting is not None:
            self._look(self._answer_if_enough)

    def _look(self, then: Callable[[_Outcome], None]) -> None:
        waiting = self._waiting
        assert waiting is not None
        problems: _Outcome = []
        sources: list[tuple[_ReplicaFetch, Partition]] = []
        for fetch in list(self._unsettled.values()):
            found = self._source(fetch)
            if isinstance(found, Partition) and self._is_held_up(found):
                found = _without_records(fetch, found)
            if isinstance(found, Partition):
                sources.append((fetch, found))
            else:
                problems.append((fetch, found))
        try:
            read = _read_all(sources, waiting.max_bytes, cached_only=True)
        except NotCached:
            reading = self._loop.run_in_executor(
                self._process.executor, partial(_read_all, sources, waiting.max_bytes)
            )
            reading.add_done_callback(
                lambda done: self._go_on(waiting, then, problems + done.result())
            )
        else:
            then(problems + read)

    def _go_on(
        self, waiting: _Waiting, then: Callable[[_Outcome], None], outcome: _Outcome
    ) -> None:
        """After a thread has read: continue unless the fetch has been answered or has ended."""
        if self._waiting is waiting:
            then(outcome)

    def _source(self, fetch: _ReplicaFetch) -> Partition | PartitionData:
        """The partition to read from, or the error to return."""
        asked = fetch.asked
        try:
            partition = self._led.find(*fetch.key)
            leader = partition.leader
            assert leader is not None, "find has looked"
            fetch.attach(partition)
            if asked.current_leader_epoch != -1:
                partition.validate_leader_epoch(asked.current_leader_epoch)
            diverging = partition.divergence(asked.fetch_offset, asked.last_fetched_epoch)
            if diverging is not None:
                return PartitionData(asked.partition, diverging_epoch=diverging)
            if fetch.is_asked_anew:
                leader.on_asked(self._replica_id, asked.fetch_offset)
                self._note_progress(leader, asked)
                fetch.is_asked_anew = False
        except ApiError as error:
            return PartitionData(asked.partition, error.code)
        return partition

    def _is_held_up(self, partition: Partition) -> bool:
        """Whether the throttle blocks this; if so, another look is scheduled."""
        throttle = self._led.throttle
        if not throttle.counts_as_leader(partition, self._replica_id):
            return False
        wait_ms = throttle.leader.wait_ms
        if wait_ms and self._throttle_timer is None:
            self._throttle_timer = self._loop.call_later(wait_ms / 1000, self._on_let_through)
        return wait_ms > 0

    def _on_let_through(self) -> None:
        self._throttle_timer = None
        self._look_again()

    def _note_progress(self, leader: PartitionLeader, asked: FetchedPartition) -> None:
        partition = leader.partition
        log = partition.log
        if not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
            return  # Out of range, as the read will report.
        fetch = FollowerFetch(
            self._replica_id, self._broker_epoch, asked.fetch_offset, asked.log_start_offset
        )
        if leader.on_follower_fetch(fetch, self._process.clock.monotonic_ms()):
            self._led.on_isr_change(partition)

    def _note_absence(self, partition: Partition | None) -> None:
        """The follower reports its position when it asks for the partition again."""
        if partition is not None and partition.followers is not None:
            partition.followers.on_absent(self._replica_id)

    def _answer_or_wait(self, max_wait_ms: int, outcome: _Outcome) -> None:
        if max_wait_ms <= 0 or not self._fetches or self._is_enough(outcome):
            self._answer(outcome)
            return
        self._settle(outcome)
        self._timer = self._loop.call_later(max_wait_ms / 1000, self._on_time_up)
        if any(fetch.is_news(data) for fetch, data in outcome):
            self._answer_before_long()

    def _answer_if_enough(self, outcome: _Outcome) -> None:
        if self._is_enough(outcome):
            self._answer(outcome)

    def _is_enough(self, outcome: _Outcome) -> bool:
        """Errors and the first response of a session are sent at once."""
        waiting = self._waiting
        assert waiting is not None
        if self._is_first:
            return True
        size = 0
        for _, data in outcome:
            if data.error_code or data.diverging_epoch is not None:
                return True
            if data.records is not None:
                size += data.records.size
        return size >= waiting.min_bytes

    @property
    def _is_first(self) -> bool:
        return self.id != 0 and self.epoch == INITIAL_EPOCH

    def _on_time_up(self) -> None:
        if self._waiting is not None:
            self._look(self._answer)

    def _answer(self, outcome: _Outcome) -> None:
        waiting = self._waiting
        assert waiting is not None
        self._stop_waiting()
        news = [(fetch, data) for fetch, data in outcome if fetch.is_news(data)]
        for fetch, data in news:
            if not data.error_code and data.diverging_epoch is None:
                fetch.sent_high_watermark = data.high_watermark
                fetch.sent_log_start_offset = data.log_start_offset
                self._spend(fetch.partition, data.records)
                leader = None if fetch.partition is None else fetch.partition.leader
                if data.records is not None and leader is not None:
                    leader.sent_offsets[self._replica_id] = fetch.asked.fetch_offset
        self._settle(outcome)
        answer = [(fetch.key[0], data) for fetch, data in news]
        if not self.id:
            self.close()
        waiting.respond(FollowerAnswer(ErrorCode.none, self.id, answer))

    def _spend(self, partition: Partition | None, records: RecordsSlice | None) -> None:
        if records is None or partition is None:
            return
        throttle = self._led.throttle
        if throttle.counts_as_leader(partition, self._replica_id):
            throttle.leader.spend(records.size)

    def _settle(self, outcome: _Outcome) -> None:
        """Fetches that are up to date wait for news; those just served go to the end."""
        for fetch, data in outcome:
            key = fetch.key
            if not fetch.is_unsettled(data):
                self._unsettled.pop(key, None)
            elif data.records is not None and key in self._unsettled:
                self._unsettled[key] = self._unsettled.pop(key)

    def _stop_waiting(self) -> None:
        self._waiting = None
        for timer in (self._timer, self._progress_timer, self._throttle_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._progress_timer = self._throttle_timer = None


class FollowerSessions:
    """All follower sessions on this broker, by id."""

    def __init__(self, led: ReplicaManager, new_id: Callable[[], int], process: Process) -> None:
        self._led = led
        self._new_id = new_id
        self._process = process
        self._sessions: dict[int, FollowerSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, request: FetchRequest) -> FollowerSession:
        """The session of a request; ApiError if it is unknown."""
        if request.session_epoch > INITIAL_EPOCH:
            session = self._sessions.get(request.session_id)
            if session is None:
                raise ApiError(ErrorCode.fetch_session_id_not_found)
            if request.session_epoch != next_epoch(session.epoch):
                raise ApiError(ErrorCode.invalid_fetch_session_epoch)
            session.epoch = request.session_epoch
            return session
        known = self._sessions.get(request.session_id)
        if known is not None:
            self.end(known)
        session_id = 0 if request.session_epoch == FINAL_EPOCH else self._new_id()
        session = FollowerSession(
            session_id,
            request.replica_id,
            request.replica_epoch,
            self._led,
            self._process,
        )
        if session_id:
            self._sessions[session_id] = session
        return session

    def end(self, session: FollowerSession) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        session.close()


def _without_records(fetch: _ReplicaFetch, partition: Partition) -> PartitionData:
    log = partition.log
    return PartitionData(
        fetch.asked.partition, ErrorCode.none, log.high_watermark, -1, log.log_start_offset
    )


def _read_all(
    sources: Iterable[tuple[_ReplicaFetch, Partition]], bytes_max: int, *, cached_only: bool = False
) -> _Outcome:
    """Runs in a thread if it must wait for the disk."""
    outcome: _Outcome = []
    size = 0
    for fetch, partition in sources:
        asked, log = fetch.asked, partition.log
        room = bytes_max - size
        code = ErrorCode.none
        records: LogSlice | None = None
        try:
            if room > 0 or not size:
                records = partition.read_to_end(
                    asked.fetch_offset,
                    min(asked.partition_max_bytes, room),
                    cached_only=cached_only,
                )
        except ApiError as error:
            code = error.code
        if records is not None:
            if size and records.size > room:
                records = None  # One batch too large for the rest of the response.
            else:
                size += records.size
        data = PartitionData(
            asked.partition,
            code,
            log.high_watermark,
            -1,
            log.log_start_offset,
            records=records,
        )
        outcome.append((fetch, data))
    return outcome
