"""The memory that all connections may use together, and which of them are read when it is short.

A session is read while it uses no more than is left. One alone can take half of the memory; n
sessions that take all they can leave an equal part free, and every session that uses less than that
part is served as if they were not there. A session that uses next to nothing is always served.

Sessions of other brokers have a share of the memory that no one else can take.

Incomplete requests that cannot grow would wait for each other forever. They get overdrafts, first
come, first served: what they use beyond the limit is counted separately, and all overdrafts
together are at most one request of the maximum size.
"""

from collections.abc import Callable
from typing import Protocol

PEERS_SHARE = 8  # One part in this many is for other brokers.
SMALL_BYTES = 4_096  # A session that uses no more is always read.
SCARCE_BYTES = 2_097_152  # When less is left, or a quarter, sessions receive little at a time.
SCARCE_SHARE = 4
WAKE_SHARE = 8  # A waiting session is read again once this part of its usage is left over.


class Debtor(Protocol):
    is_peer: bool

    def on_memory_free(self) -> None: ...


class MemoryBudget:
    """`on_scarce` is called when little is left and when that is over, `on_wait` for each wait."""

    def __init__(
        self,
        limit: int,
        overdraft_limit: int,
        on_scarce: Callable[[bool], None] = lambda _: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        total = limit if limit >= 0 else 1 << 62
        self.limit = total
        self._peers_limit = total // PEERS_SHARE
        self._common_limit = total - self._peers_limit
        self._scarce_at = min(SCARCE_BYTES, total // SCARCE_SHARE)
        self._overdraft_limit = overdraft_limit
        self._on_scarce = on_scarce
        self._on_wait = on_wait
        self._common = self._peers = 0  # Used by sessions of clients and of brokers.
        self._overdrafts: dict[Debtor, list[int]] = {}  # What each was granted, and uses of it.
        self._granted = 0  # Invariant: the sum of the granted overdrafts.
        # What they use, and what is missing of their requests; in order of arrival.
        self._waiting: dict[Debtor, tuple[int, int]] = {}
        self._wake_at = 0  # No waiting session needs less than this.
        self._scarce = False
        self.used = 0  # Invariant: the sum of what the sessions charged.

    @property
    def short(self) -> bool:
        """Whether little is left, a session waits, or one depends on an overdraft."""
        return bool(self._scarce or self._waiting or self._overdrafts)

    def charge(self, session: Debtor, change: int) -> None:
        self.used += change
        overdraft = self._overdrafts.get(session)
        if overdraft is not None:
            overdraft[1] += change
        else:
            self._count(session, change)

    def has_room(self, session: Debtor, held: int) -> bool:
        """Whether a session that uses this much may be read."""
        if (
            held <= SMALL_BYTES
            or held <= self._common_limit - self._common
            or session in self._overdrafts
            or (session.is_peer and self._peers <= self._peers_limit)
        ):
            if self._waiting:
                self._waiting.pop(session, None)
            return True
        return False

    def overdraw(self, session: Debtor, missing: int) -> bool:
        """Whether it may be read beyond the limit, to the end of its current request."""
        if self._overdrafts and self._granted + missing > self._overdraft_limit:
            return False
        self._overdrafts[session] = [missing, 0]
        self._granted += missing
        self._waiting.pop(session, None)
        return True

    def wait(self, session: Debtor, held: int, missing: int) -> None:
        """`session.on_memory_free()` is called, once, when it may be worth asking again."""
        is_new = session not in self._waiting
        self._waiting[session] = (held, missing)
        needed = held + held // WAKE_SHARE
        self._wake_at = min(self._wake_at, needed) if len(self._waiting) > 1 else needed
        if is_new:
            self._on_wait()

    def is_waiting(self, session: Debtor) -> bool:
        return session in self._waiting

    def release(self, session: Debtor) -> None:
        """The session is no longer in the middle of a request, or it has ended."""
        overdraft = self._overdrafts.pop(session, None)
        if overdraft is not None:
            granted, taken = overdraft
            self._granted -= granted
            self._count(session, taken)
            self._wake()

    def forget(self, session: Debtor) -> None:
        self._waiting.pop(session, None)
        self.release(session)

    def _count(self, session: Debtor, change: int) -> None:
        if session.is_peer:
            self._peers += change
            if change < 0 and self._waiting:
                self._wake()
            return
        self._common += change
        left = self._common_limit - self._common
        if (left < self._scarce_at) is not self._scarce:
            self._scarce = not self._scarce
            self._on_scarce(self._scarce)
        if change < 0 and self._waiting and left >= self._wake_at:
            self._wake()

    def _wake(self) -> None:
        """Wake as many waiting sessions as there is memory for, or room for overdrafts."""
        left = self._common_limit - self._common
        room = self._overdraft_limit - self._granted
        overdrawn = bool(self._overdrafts)
        woken = []
        wake_at = self.limit
        for session, (held, missing) in self._waiting.items():
            needed = held + held // WAKE_SHARE
            if needed <= left:
                left -= max(held // WAKE_SHARE, SMALL_BYTES)
            elif missing and (missing <= room or not overdrawn):
                room -= missing
                overdrawn = True
            elif not session.is_peer:
                wake_at = min(wake_at, needed)
                continue
            woken.append(session)
        self._wake_at = wake_at
        for session in woken:
            del self._waiting[session]
            session.on_memory_free()
