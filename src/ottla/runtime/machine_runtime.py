"""Drives a machine over a commit log.

An operation runs at once: its records are appended and replayed before anything else happens, and
its response waits until they are committed. An operation without records waits until the state that
it saw is committed.

When an append or the log fails, all waiting replies fail, the machine is dropped with everything
not written to the log, and a new one is loaded from the log: at once, and with a delay if appends
keep failing, as on a full disk. Transactional records are the exception: the log may reject them
because of their producer, which concerns no one else.

No reply to a client waits for a commit longer than the write timeout, if there is one: followers
may be away for hours, and a client that gets an error can look for another coordinator. Its request
still takes effect when they return. The broker's own operations wait for that.
"""

import asyncio
import logging
import math
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from ottla.machine.contract import Expiry, Machine, RecordCodec, Timers
from ottla.machine.result import Deferred, Result
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.clock import Clock
from ottla.runtime.commit_log import CommitLog, Listener
from ottla.runtime.loop_timers import LoopTimers
from ottla.runtime.machine_batches import (
    NOT_PLAIN,
    StoredBatch,
    decode_batch,
    encode_batch,
    replay_plain,
)
from ottla.storage.errors import StorageError

logger = logging.getLogger(__name__)

RELOAD_DELAY_MAX_S = 30.0
# For too few in-sync replicas, as while a broker is replaced: soon over, and the log is unchanged.
REFUSED_DELAY_MAX_S = 1.0
_OVERDUE_CHECK_MS = 100  # Minimum time between two checks of waiting replies.

_LED_ELSEWHERE = frozenset({ErrorCode.not_controller, ErrorCode.not_coordinator})
# Errors for which a machine is dropped. The next one gets its timers from the log.
_DROPPED = _LED_ELSEWHERE | {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.kafka_storage_error,
}

M = TypeVar("M", bound=Machine)
R = TypeVar("R")

Operation = Callable[[M, int], Result[R]]  # Called with the machine and now_ms.
Perform = Callable[[Any], object]  # Starts an effect of a result whose records are committed.
# Sees what an operation is about to change; completions it adds are settled once that is committed.
Observe = Callable[[M, Result[Any]], Result[Any]]


class _Parked(NamedTuple):
    offset: int  # Everything before it must be committed.
    result: Result[Any]
    reply: "Future[Any]"
    until_ms: float  # By the monotonic clock; infinite if there is no timeout.


class MachineRuntime(Generic[M]):
    """Belongs to the loop's thread.

    `create_machine` creates an empty machine that schedules its timers here. `name` is that of the
    log, for operators. `not_ready` is the error for calls before the machine is loaded.
    `on_failure` is called when it cannot be reloaded after a failure. Without `write_timeout_ms`
    replies wait indefinitely.
    """

    def __init__(
        self,
        create_machine: Callable[[Timers], M],
        codec: RecordCodec,
        log: CommitLog,
        clock: Clock,
        loop: AbstractEventLoop,
        *,
        name: str,
        on_failure: Callable[[BaseException], object],
        not_ready: ErrorCode = ErrorCode.coordinator_load_in_progress,
        observe: Observe[M] | None = None,
        perform: Perform | None = None,
        write_timeout_ms: int | None = None,
    ) -> None:
        self._create_machine = create_machine
        self._codec = codec
        self._log = log
        self._clock = clock
        self._loop = loop
        self._name = name
        self._on_failure = on_failure
        self._not_ready = not_ready
        self._observe = observe
        self._perform = perform
        self._write_timeout_ms = write_timeout_ms
        self._machine: M | None = None  # None while not loaded.
        self._timers = LoopTimers(loop, clock, self._expire)
        self._parked: deque[_Parked] = deque()  # Invariant: offsets never decrease.
        self._overdue_timer: asyncio.TimerHandle | None = None
        self._unanswered: dict[Future[Any], None] = {}  # In order of arrival.
        self._reloading: asyncio.Task[None] | None = None
        self._unloaded = False
        self._drops_count = 0  # Since the last successful append.
        log.listen(Listener(self._on_committed, self._on_log_failed))

    @property
    def machine(self) -> M:
        """For reads that need not be committed. ApiError while it is not loaded."""
        if self._machine is None:
            raise ApiError(self._not_ready, "the state is being loaded; try again")
        return self._machine

    @property
    def timers(self) -> LoopTimers:
        """For inspection, and to expire timers."""
        return self._timers

    @property
    def next_offset(self) -> int:
        """The first offset of an operation that runs now."""
        return self._log.next_offset

    async def load(self) -> None:
        machine = self._create_machine(self._timers)
        async for batches in self._log.load():
            for batch in batches:
                if batch.attributes & NOT_PLAIN:
                    self._replay(machine, batch)
                else:
                    replay_plain(machine, batch.records, self._codec)
            await asyncio.sleep(0)
        self._machine = machine
        machine.on_loaded(self._clock.now_ms())

    def call(self, operation: Operation[M, R], *, has_timeout: bool = True) -> "R | Future[R]":
        """Run the operation now: returns its response if it is already final, otherwise a future.

        Raises ApiError if it is rejected. An answer without a future costs far less. Operations of
        the broker itself have no timeout.
        """
        machine = self.machine
        now_ms = self._clock.now_ms()
        result = operation(machine, now_ms)
        if result.records:
            if self._observe is not None:
                result = self._observe(machine, result)
            self._append(machine, result.records, now_ms)
        offset = self._log.next_offset
        if offset > self._log.committed_offset:
            reply = self._new_reply()
            timeout_ms = self._write_timeout_ms if has_timeout else None
            until_ms = math.inf
            if timeout_ms is not None:
                until_ms = self._clock.monotonic_ms() + timeout_ms
                if self._overdue_timer is None:
                    self._refuse_overdue_after(timeout_ms)
            self._parked.append(_Parked(offset, result, reply, until_ms))
            return reply
        self._complete(result)
        response = result.response
        if isinstance(response, Deferred):
            reply = self._new_reply()
            self._answer_when_settled(response, reply)
            return reply.result() if reply.done() else reply
        return response

    def submit(self, operation: Operation[M, R], *, has_timeout: bool = True) -> "Future[R]":
        """Like `call`, but always returns a future, even for a rejection."""
        try:
            response = self.call(operation, has_timeout=has_timeout)
        except ApiError as error:
            reply: Future[R] = self._loop.create_future()
            reply.set_exception(error.with_traceback(None))
            return reply
        if isinstance(response, Future):
            return response
        reply = self._loop.create_future()
        reply.set_result(response)
        return reply

    def unload(self, error: ApiError) -> None:
        """Another node leads now, or this one stops; the runtime is not used again."""
        self._unloaded = True
        if self._reloading is not None:
            self._reloading.cancel()
        self._forget(error)

    def _replay(self, machine: M, batch: StoredBatch) -> None:
        for decoded, record in decode_batch(batch, self._codec):
            machine.replay(decoded, record.timestamp)

    def _append(self, machine: M, records: tuple[object, ...], now_ms: int) -> None:
        try:
            self._log.append(encode_batch(records, self._codec, now_ms))
        except (ApiError, StorageError) as error:
            if isinstance(error, ApiError) and _is_of_producer(records):
                raise
            raise self._drop(error) from None
        if self._drops_count:
            self._drops_count = 0
            logger.info("%s accepts records again", self._name)
        try:
            for record in records:
                machine.replay(record, now_ms)
        except BaseException as error:
            self._drop(error)  # A bug; but the log is right, and the machine is rebuilt from it.
            raise

    def _new_reply(self) -> "Future[Any]":
        reply: Future[Any] = self._loop.create_future()
        self._unanswered[reply] = None
        return reply

    def _refuse_overdue_after(self, delay_ms: float) -> None:
        self._overdue_timer = self._loop.call_later(delay_ms / 1000, self._refuse_overdue)

    def _refuse_overdue(self) -> None:
        """Completions and effects that wait for the same commit still happen when it arrives."""
        self._overdue_timer = None
        assert self._write_timeout_ms is not None
        now_ms = self._clock.monotonic_ms()
        kept: deque[_Parked] = deque()
        for parked in self._parked:
            if parked.until_ms > now_ms:
                kept.append(parked)
                continue
            if parked.result.completions or parked.result.effects:
                kept.append(parked)
            self._answer(parked.reply, _overdue(self._write_timeout_ms))
        self._parked = kept
        waiting = (parked.until_ms for parked in kept if not parked.reply.done())
        next_ms = min(waiting, default=math.inf)
        if next_ms < math.inf:
            self._refuse_overdue_after(max(next_ms - now_ms, _OVERDUE_CHECK_MS))

    def _settle(self, parked: _Parked) -> None:
        self._complete(parked.result)
        response = parked.result.response
        if isinstance(response, Deferred):
            self._answer_when_settled(response, parked.reply)
        else:
            self._answer(parked.reply, response)

    def _complete(self, result: Result[Any]) -> None:
        """Perform what the commit triggers, before the operation's own response leaves."""
        for effect in result.effects:
            assert self._perform is not None, f"nobody performs {effect}"
            self._perform(effect)
        for completion in result.completions:
            completion.deferred.settle(completion.outcome)

    def _answer_when_settled(self, response: Deferred[Any], reply: "Future[Any]") -> None:
        response.when_settled(lambda outcome: self._answer(reply, outcome))

    def _answer(self, reply: "Future[Any]", outcome: object) -> None:
        self._unanswered.pop(reply, None)
        if reply.done():
            return
        if isinstance(outcome, ApiError):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)

    def _on_committed(self) -> None:
        committed = self._log.committed_offset
        parked = self._parked
        while parked and parked[0].offset <= committed:
            self._settle(parked.popleft())

    def _expire(self, expiry: Expiry, due_ms: int) -> None:
        """With an earlier time the machine would find nothing due, and keep waiting."""
        expired = self.submit(lambda _, now_ms: expiry(max(now_ms, due_ms)), has_timeout=False)
        expired.add_done_callback(_log_failed_expiry)

    def _on_log_failed(self, error: BaseException) -> None:
        if not self._unloaded:
            self._drop(error)

    def _drop(self, error: BaseException) -> ApiError:
        """Returns the error for the waiting callers."""
        if not isinstance(error, ApiError):
            error = ApiError(ErrorCode.kafka_storage_error, str(error))
        self._forget(error)
        if self._reloading is None and not self._unloaded:
            if not self._drops_count:
                logger.log(_level_of(error), "%s refuses records now: %s", self._name, error)
            is_refused = error.code is ErrorCode.coordinator_not_available
            delay_max_s = REFUSED_DELAY_MAX_S if is_refused else RELOAD_DELAY_MAX_S
            delay_s = min(2.0**self._drops_count - 1, delay_max_s)
            self._drops_count += 1
            self._reloading = self._loop.create_task(self._reload(delay_s))
            self._reloading.add_done_callback(self._on_reloaded)
        return error

    async def _reload(self, delay_s: float) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        await self.load()

    def _on_reloaded(self, reloading: "asyncio.Task[None]") -> None:
        self._reloading = None
        if not reloading.cancelled() and (error := reloading.exception()) is not None:
            self._on_failure(error)

    def _forget(self, error: ApiError) -> None:
        self._machine = None
        self._timers.cancel_all()
        if self._overdue_timer is not None:
            self._overdue_timer.cancel()
            self._overdue_timer = None
        self._parked.clear()
        unanswered, self._unanswered = self._unanswered, {}
        for reply in unanswered:
            if not reply.done():
                reply.set_exception(error)


def _overdue(timeout_ms: int) -> ApiError:
    return ApiError(
        ErrorCode.coordinator_not_available, f"not replicated within {timeout_ms} ms; try again"
    )


def _is_of_producer(records: tuple[object, ...]) -> bool:
    return isinstance(records[0], Transactional | TransactionMarker)


def _level_of(error: ApiError) -> int:
    if error.code in _LED_ELSEWHERE:
        return logging.INFO
    is_refused = error.code is ErrorCode.coordinator_not_available
    return logging.WARNING if is_refused else logging.ERROR


def _log_failed_expiry(reply: "Future[None]") -> None:
    if reply.cancelled() or (error := reply.exception()) is None:
        return
    if not (isinstance(error, ApiError) and error.code in _DROPPED):
        logger.warning("a timer had no effect: %s", error)
