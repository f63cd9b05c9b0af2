"""Drives a machine over a commit log.

An operation runs at once: its records are appended and replayed before anything else happens, and
its response waits until they are committed. An operation without records waits until the state that
it saw is committed.

When an append fails or the log does, every reply that waits fails, the machine is dropped with all
that it has not written down, and a new one is loaded from the log: at once, and after a while if
appends go on failing, as on a full disk. Records of a transaction are the exception: the log may
refuse them for their producer's sake, which concerns nobody else.
"""

import asyncio
import logging
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
# When too few replicas are in sync, as while a broker is replaced: that passes soon, and the log is
# as it was.
REFUSED_DELAY_MAX_S = 1.0

_LED_ELSEWHERE = frozenset({ErrorCode.not_controller, ErrorCode.not_coordinator})
# What a machine is dropped for. The one that is loaded next has the timers of the log.
_DROPPED = _LED_ELSEWHERE | {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.kafka_storage_error,
}

M = TypeVar("M", bound=Machine)
R = TypeVar("R")

Operation = Callable[[M, int], Result[R]]  # Called with the machine and now_ms.
Perform = Callable[[Any], object]  # Begins an effect of a result whose records are committed.
# Sees what an operation would change before it does; completions that it adds are settled when the
# change is committed.
Observe = Callable[[M, Result[Any]], Result[Any]]


class _Parked(NamedTuple):
    offset: int  # Everything before it must be committed.
    result: Result[Any]
    reply: "Future[Any]"


class MachineRuntime(Generic[M]):
    """It belongs to the loop's thread.

    `create_machine` makes an empty machine that schedules its timers here. `name` is that of the
    log, for operators. `not_ready` is the error of what is submitted before the machine is loaded.
    `on_failure` is called when it cannot be loaded again after a failure.
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
        self._machine: M | None = None  # None while it is not loaded.
        self._timers = LoopTimers(loop, clock, self._expire)
        self._parked: deque[_Parked] = deque()  # Invariant: offsets do not fall.
        self._unanswered: dict[Future[Any], None] = {}  # In the order of their coming.
        self._reloading: asyncio.Task[None] | None = None
        self._unloaded = False
        self._drops_count = 0  # Since the last append that did not fail.
        log.listen(Listener(self._on_committed, self._on_log_failed))

    @property
    def machine(self) -> M:
        """For reads that need not be committed. ApiError while it is not loaded."""
        if self._machine is None:
            raise self._not_ready_error()
        return self._machine

    @property
    def timers(self) -> LoopTimers:
        """To look at, and to let expire."""
        return self._timers

    @property
    def next_offset(self) -> int:
        """Of the first record of an operation that runs now."""
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

    def call(self, operation: Operation[M, R]) -> "R | Future[R]":
        """Run the operation now: its response if that is true already, else the future of it.

        Raises ApiError when it is refused. Without a future to make, an answer costs far less.
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
            self._parked.append(_Parked(offset, result, reply))
            return reply
        self._complete(result)
        response = result.response
        if isinstance(response, Deferred):
            reply = self._new_reply()
            self._answer_when_settled(response, reply)
            return reply.result() if reply.done() else reply
        return response

    def submit(self, operation: Operation[M, R]) -> "Future[R]":
        """Like `call`, always with a future, also of a refusal."""
        try:
            response = self.call(operation)
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
        """Another node leads now, or this one stops; this runtime is not used again."""
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
            self._drop(error)  # A bug; but the log is right, and the machine is made from it again.
            raise

    def _new_reply(self) -> "Future[Any]":
        reply: Future[Any] = self._loop.create_future()
        self._unanswered[reply] = None
        return reply

    def _settle(self, parked: _Parked) -> None:
        self._complete(parked.result)
        response = parked.result.response
        if isinstance(response, Deferred):
            self._answer_when_settled(response, parked.reply)
        else:
            self._answer(parked.reply, response)

    def _complete(self, result: Result[Any]) -> None:
        """What is committed takes effect, before its own answer leaves."""
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
        """A machine that was told an earlier time would find that nothing is due, and wait on."""
        expired = self.submit(lambda _, now_ms: expiry(max(now_ms, due_ms)))
        expired.add_done_callback(_log_failed_expiry)

    def _on_log_failed(self, error: BaseException) -> None:
        if not self._unloaded:
            self._drop(error)

    def _drop(self, error: BaseException) -> ApiError:
        """Returns what whoever waits is told."""
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
        self._parked.clear()
        unanswered, self._unanswered = self._unanswered, {}
        for reply in unanswered:
            if not reply.done():
                reply.set_exception(error)

    def _not_ready_error(self) -> ApiError:
        return ApiError(self._not_ready, "the state is being loaded; try again")


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
