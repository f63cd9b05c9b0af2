"""A produce request that waits until its appends are acknowledged."""

from collections.abc import Callable

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.waiters import Waiter

OnFailure = Callable[[ApiError], None]


class DelayedProduce:
    """Expect each append that is not yet safe, then start; `finish` is called once, when all are
    safe or failed, or when the deadline has passed."""

    __slots__ = ("_finish", "_outstanding", "deadline_ms", "has_failed")

    def __init__(self) -> None:
        self.has_failed = False
        self.deadline_ms = 0.0
        self._outstanding: dict[int, OnFailure] = {}
        self._finish: Callable[[], None] | None = None

    def expect(self, on_failure: OnFailure) -> Waiter:
        number = len(self._outstanding)
        self._outstanding[number] = on_failure

        def waiter(error: ApiError | None) -> None:
            if self._outstanding.pop(number, None) is None:
                return  # Timed out before.
            if error is not None:
                self.has_failed = True
                on_failure(error)
            if not self._outstanding:
                self._complete()

        return waiter

    def start(self, finish: Callable[[], None], deadline_ms: float) -> None:
        self.deadline_ms = deadline_ms
        self._finish = finish
        if not self._outstanding:
            self._complete()

    def expire(self) -> None:
        for on_failure in self._outstanding.values():
            on_failure(ApiError(ErrorCode.request_timed_out))
        self._outstanding.clear()
        self._complete()

    def _complete(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()


class DelayedProduces:
    """Those that wait now. A sweep ends the late ones; producers' timeouts are coarse enough."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[DelayedProduce, None] = {}  # In the order of their coming.

    def __len__(self) -> int:
        return len(self._waiting)

    def start(
        self, produce: DelayedProduce, finish: Callable[[], None], deadline_ms: float
    ) -> None:
        def finish_and_forget() -> None:
            self._waiting.pop(produce, None)
            finish()

        self._waiting[produce] = None
        produce.start(finish_and_forget, deadline_ms)

    def expire(self, now_ms: float) -> None:
        for produce in [late for late in self._waiting if late.deadline_ms <= now_ms]:
            produce.expire()
