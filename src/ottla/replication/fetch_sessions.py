"""Incremental fetch sessions (KIP-227).

A consumer names its partitions once; later requests carry only the changes, and later responses
only the partitions with something new.

Requests by session id and epoch:

  id 0,  epoch -1   full, without a session
  id 0,  epoch 0    full, and opens a session
  id n,  epoch -1   full, and closes session n
  id n,  epoch 0    full, closes session n and opens another
  id n,  epoch > 0  incremental; the epoch must be one more than that of the previous request
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import FetchedPartition, FetchRequest

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1

T = TypeVar("T")

_NO_ID = UUID(int=0)

WantedKey = tuple[str | UUID, int]


class WantedPartition:
    """What a consumer wants from a partition, and what it was last told."""

    __slots__ = ("asked", "partition", "sent_high_watermark", "sent_log_start_offset", "topic")

    def __init__(self, topic: str | UUID, asked: FetchedPartition) -> None:
        self.topic = topic  # A name up to v12, an id from v13 on.
        self.partition = asked.partition
        self.asked = asked
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1


class FetchSession:
    __slots__ = ("by_id", "epoch", "id", "wanted")

    def __init__(self, session_id: int, wanted: Iterable[WantedPartition], *, by_id: bool) -> None:
        self.id = session_id
        self.epoch = INITIAL_EPOCH
        self.by_id = by_id
        self.wanted: dict[WantedKey, WantedPartition] = {
            (partition.topic, partition.partition): partition for partition in wanted
        }

    def update(self, request: FetchRequest) -> None:
        wanted = self.wanted
        for topic, asked in each_partition(request.topics, by_id=self.by_id):
            known = wanted.get((topic, asked.partition))
            if known is None:
                wanted[topic, asked.partition] = WantedPartition(topic, asked)
            else:
                known.asked = asked
        for key in each_partition(request.forgotten, by_id=self.by_id):
            wanted.pop(key, None)

    def served(self, partitions: Iterable[WantedPartition]) -> None:
        """Move partitions that returned data to the end, so that the others get their turn."""
        for partition in partitions:
            key = (partition.topic, partition.partition)
            if key in self.wanted:
                self.wanted[key] = self.wanted.pop(key)


class FetchSessions:
    """All sessions of this broker, least recently used first, up to a limit."""

    def __init__(self, slots_max: int, first_id: int) -> None:
        """`first_id` should differ between runs, so that ids of an earlier run are unknown."""
        self._slots_max = slots_max
        self._sessions: dict[int, FetchSession] = {}
        self._last_id = first_id - 1

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(
        self, request: FetchRequest, *, by_id: bool
    ) -> tuple[FetchSession | None, Sequence[WantedPartition]]:
        """The session of this request, if any, and everything that it wants."""
        if request.session_epoch > INITIAL_EPOCH:
            session = self._continue(request, by_id=by_id)
            return session, list(session.wanted.values())
        self._sessions.pop(request.session_id, None)
        wanted = [
            WantedPartition(topic, asked)
            for topic, asked in each_partition(request.topics, by_id=by_id)
        ]
        if request.session_epoch == FINAL_EPOCH or not wanted or not self._slots_max:
            return None, wanted
        return self._open(wanted, by_id=by_id), wanted

    def keep_if_continued(self, session: FetchSession | None) -> FetchSession | None:
        """For a response that omits everything: drop a session that the request would have opened,
        because its client was told nothing about its partitions."""
        if session is None or session.epoch != INITIAL_EPOCH:
            return session
        self._sessions.pop(session.id, None)
        return None

    def new_id(self) -> int:
        self._last_id = 1 if self._last_id >= EPOCH_MAX else self._last_id + 1
        return self._last_id

    def _continue(self, request: FetchRequest, *, by_id: bool) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.fetch_session_id_not_found)
        if session.by_id != by_id:
            raise ApiError(ErrorCode.fetch_session_topic_id_error)
        if request.session_epoch != next_epoch(session.epoch):
            raise ApiError(ErrorCode.invalid_fetch_session_epoch)
        session.epoch = request.session_epoch
        session.update(request)
        self._sessions[session.id] = self._sessions.pop(session.id)
        return session

    def _open(self, wanted: Sequence[WantedPartition], *, by_id: bool) -> FetchSession:
        if len(self._sessions) >= self._slots_max:
            del self._sessions[next(iter(self._sessions))]
        session = FetchSession(self.new_id(), wanted, by_id=by_id)
        self._sessions[session.id] = session
        return session


def next_epoch(epoch: int) -> int:
    return 1 if epoch == EPOCH_MAX else epoch + 1


def each_partition(
    topics: Iterable[tuple[str, UUID | None, Sequence[T]]], *, by_id: bool
) -> Iterator[tuple[str | UUID, T]]:
    """Each partition of a list in a request, with the name or the id of its topic."""
    for name, topic_id, partitions in topics:
        topic = (topic_id or _NO_ID) if by_id else name
        for partition in partitions:
            yield topic, partition
