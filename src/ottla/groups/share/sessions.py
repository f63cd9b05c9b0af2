"""Share sessions: what each consumer of share groups fetches from this broker.

A consumer names its partitions once; later requests carry only the changes. ShareFetch and
ShareAcknowledge of a consumer use the same session and share its epoch:

    0   opens a session; one that the member had here ends
    n   goes on; the epoch must be one more than that of the request before
    -1  closes the session; the request may still acknowledge
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.groups.partitions import TopicIdPartition
from ottla.protocol.errors import ApiError, ErrorCode

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1


class SessionKey(NamedTuple):
    group_id: str
    member_id: str


class ShareSession:
    __slots__ = ("abandon", "epoch", "key", "owner", "partitions")

    def __init__(self, key: SessionKey, owner: object) -> None:
        self.key = key
        self.owner = owner  # The connection that the session ends with.
        self.abandon: Callable[[], None] | None = None  # Ends the waiting fetch.
        self.epoch = INITIAL_EPOCH
        self.partitions: dict[TopicIdPartition, None] = {}  # Those to serve next come first.

    def end(self) -> None:
        """A waiting fetch acquires nothing more, and is answered."""
        if self.abandon is not None:
            self.abandon()

    def update(
        self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
    ) -> None:
        for partition in added:
            self.partitions.setdefault(partition)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def served(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Move partitions that returned records to the end, so that the others get their turn."""
        for partition in partitions:
            if partition in self.partitions:
                del self.partitions[partition]
                self.partitions[partition] = None


class ShareSessions:
    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._owners: dict[object, set[SessionKey]] = {}  # Includes sessions that have ended.

    def __len__(self) -> int:
        return len(self._sessions)

    def knows_owner(self, owner: object) -> bool:
        """Whether it has opened sessions, so that `on_owner_gone` will be called."""
        return owner in self._owners

    def open(self, key: SessionKey, owner: object) -> ShareSession:
        replaced = self._sessions.pop(key, None)
        if replaced is not None:
            replaced.end()  # Its connection may be dead without anyone noticing.
        if len(self._sessions) >= self._sessions_max:
            raise ApiError(
                ErrorCode.share_session_limit_reached,
                f"this broker has {self._sessions_max} share sessions already",
            )
        session = self._sessions[key] = ShareSession(key, owner)
        self._owners.setdefault(owner, set()).add(key)
        return session

    def has(self, session: ShareSession) -> bool:
        """Whether the session has not ended."""
        return self._sessions.get(session.key) is session

    def advance(self, key: SessionKey, epoch: int) -> ShareSession:
        session = self._find(key)
        expected = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        if epoch != expected:
            raise ApiError(
                ErrorCode.invalid_share_session_epoch,
                f"the share session's epoch is {expected}, not {epoch}",
            )
        session.epoch = epoch
        return session

    def close(self, key: SessionKey) -> ShareSession:
        session = self._find(key)
        del self._sessions[key]
        session.end()
        return session

    def on_owner_gone(self, owner: object) -> list[ShareSession]:
        """End and return the sessions that still existed."""
        mine = self.of_owner(owner)
        self._owners.pop(owner, None)
        for session in mine:
            del self._sessions[session.key]
            session.end()
        return mine

    def of_owner(self, owner: object) -> list[ShareSession]:
        return [
            session
            for key in self._owners.get(owner, ())
            if (session := self._sessions.get(key)) is not None and session.owner is owner
        ]

    def _find(self, key: SessionKey) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise ApiError(
                ErrorCode.share_session_not_found, f"{key.member_id} has no share session here"
            )
        return session
