"""The memory that all connections may hold together.

When it is exceeded, a session that has received something is read no further until the sum has
fallen. So that sessions which all hold half a request cannot wait for each other for ever, one
session at a time has the overdraft: it is read on, and may exceed the sum by one request.
"""

from collections.abc import Callable
from typing import Protocol

LOW_NUMERATOR, LOW_DENOMINATOR = 3, 4  # Reading resumes when the sum falls to this share.


class Debtor(Protocol):
    def on_memory_free(self) -> None: ...


class MemoryBudget:
    def __init__(self, limit: int, on_change: Callable[[bool], None]) -> None:
        self._limit = limit if limit >= 0 else 1 << 62
        self._low = self._limit * LOW_NUMERATOR // LOW_DENOMINATOR
        self._on_change = on_change
        self._waiting: dict[Debtor, None] = {}
        self._overdraft: Debtor | None = None
        self.used = 0  # Invariant: the sum of what the sessions charged.
        self.exceeded = False

    def charge(self, change: int) -> None:
        self.used += change
        if self.exceeded:
            if self.used <= self._low:
                self.exceeded = False
                self._on_change(False)
                self._wake_all()
        elif self.used > self._limit:
            self.exceeded = True
            self._on_change(True)

    def may_receive(self, session: Debtor, *, mid_request: bool) -> bool:
        """If not, `session.on_memory_free()` is called when it may be worth asking again."""
        if not self.exceeded:
            return True
        if mid_request and self._overdraft in (None, session):
            self._overdraft = session
            self._waiting.pop(session, None)
            return True
        self._waiting[session] = None
        return False

    def release(self, session: Debtor) -> None:
        """The session is no longer in the middle of a request, or it has ended."""
        if self._overdraft is session:
            self._overdraft = None
            self._wake_all()

    def forget(self, session: Debtor) -> None:
        self._waiting.pop(session, None)
        self.release(session)

    def _wake_all(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for session in waiting:
            session.on_memory_free()
