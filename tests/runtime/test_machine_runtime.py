import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kits.manual_clock import ManualClock
from tests.kits.refusals import refusal_of
from tests.runtime.machines import ManualCommitLog, TextCodec, Words

from ottla.machine.result import Completion, Deferred, Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.machine_runtime import MachineRuntime, logger
from ottla.storage.errors import StorageError

WRITE_TIMEOUT_MS = 50


class Bench:
    def __init__(self, *words: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.log = ManualCommitLog(*words)
        self.clock = ManualClock(100)
        self.failures: list[BaseException] = []
        self.performed: list[object] = []
        self.runtime = MachineRuntime(
            Words,
            TextCodec(),
            self.log,
            self.clock,
            self.loop,
            name="words-0",
            on_failure=self.failures.append,
            perform=self.performed.append,
            write_timeout_ms=WRITE_TIMEOUT_MS,
        )

    def load(self) -> "Bench":
        self.loop.run_until_complete(self.runtime.load())
        return self

    def add(self, *words: str) -> asyncio.Future[int]:
        return self.runtime.submit(lambda machine, now_ms: machine.add(*words))

    def count(self) -> asyncio.Future[Any]:
        return self.runtime.submit(lambda machine, now_ms: machine.count())

    def rounds(self, number: int = 3) -> None:
        for _ in range(number):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench().load()
    yield bench
    for task in asyncio.all_tasks(bench.loop):
        task.cancel()
    bench.rounds()
    bench.loop.run_until_complete(bench.loop.shutdown_asyncgens())
    bench.loop.close()


def test_records_are_replayed_at_once_and_answered_when_committed(bench: Bench) -> None:
    reply = bench.add("a", "b")
    assert bench.runtime.machine.words == ["a", "b"]
    assert not reply.done()
    bench.log.commit(1)
    assert not reply.done()
    bench.log.commit()
    assert reply.result() == 2


def test_a_call_is_answered_at_once_when_all_is_committed(bench: Bench) -> None:
    assert bench.runtime.call(lambda machine, now_ms: machine.count()) == 0


def test_a_call_whose_records_are_not_committed_is_answered_later(bench: Bench) -> None:
    reply = bench.runtime.call(lambda machine, now_ms: machine.add("a"))
    assert isinstance(reply, asyncio.Future)
    assert not reply.done()
    bench.log.commit()
    assert reply.result() == 1


def test_nobody_waits_for_a_commit_longer_than_the_write_timeout(bench: Bench) -> None:
    changing = bench.add("a")
    reading = bench.count()
    bench.clock.advance(WRITE_TIMEOUT_MS)
    later = bench.add("b")
    for overdue in (changing, reading):
        with pytest.raises(ApiError) as refusal:
            bench.loop.run_until_complete(overdue)
        assert refusal.value.code is ErrorCode.coordinator_not_available
    assert not later.done()
    bench.log.commit()
    assert later.result() == 2
    assert bench.runtime.machine.words == ["a", "b"]


def test_the_brokers_own_operations_wait_for_their_commit(bench: Bench) -> None:
    own = bench.runtime.submit(lambda machine, now_ms: machine.add("a"), has_timeout=False)
    reading = bench.count()
    bench.clock.advance(WRITE_TIMEOUT_MS)
    with pytest.raises(ApiError):
        bench.loop.run_until_complete(reading)
    assert not own.done()
    bench.log.commit()
    assert own.result() == 1


def test_what_a_commit_completes_is_completed_after_its_own_reply_was_refused(bench: Bench) -> None:
    deferred: Deferred[Any] = Deferred()
    unanswered: Result[Any] = Result(deferred)
    waiting = bench.runtime.submit(lambda machine, now_ms: unanswered)

    def complete(machine: Words, now_ms: int) -> Result[str]:
        return Result("own", machine.add("a").records, (Completion(deferred, "done"),))

    completing = bench.runtime.submit(complete)
    bench.clock.advance(WRITE_TIMEOUT_MS)
    with pytest.raises(ApiError):
        bench.loop.run_until_complete(completing)
    assert not waiting.done()
    bench.log.commit()
    assert waiting.result() == "done"


def test_a_call_that_is_refused_raises(bench: Bench) -> None:
    with pytest.raises(ApiError):
        bench.runtime.call(lambda machine, now_ms: machine.refuse())


def test_a_call_whose_append_fails_raises(bench: Bench) -> None:
    bench.log.append_error = StorageError("/data", "gone")
    with pytest.raises(ApiError) as refusal:
        bench.runtime.call(lambda machine, now_ms: machine.add("a"))
    assert refusal.value.code is ErrorCode.kafka_storage_error
    bench.rounds()


def test_a_call_that_waits_for_another_is_answered_by_it(bench: Bench) -> None:
    waiter = bench.runtime.call(lambda machine, now_ms: machine.wait())
    bench.add("a")
    bench.log.commit()
    assert waiter.result() == "a"


def test_a_call_that_settles_what_it_waits_for_is_answered_at_once(bench: Bench) -> None:
    settled: Deferred[Any] = Deferred()
    result: Result[Any] = Result(settled, completions=(Completion(settled, "a"),))
    assert bench.runtime.call(lambda machine, now_ms: result) == "a"


def test_effects_are_performed_when_their_records_are_committed(bench: Bench) -> None:
    result = Result("answered", ("a",), effects=("tell",))
    reply = bench.runtime.submit(lambda machine, now_ms: result)
    assert bench.runtime.machine.words == ["a"]
    assert bench.performed == []
    bench.log.commit()
    assert bench.performed == ["tell"]
    assert reply.result() == "answered"


def test_effects_of_what_is_not_committed_are_not_performed(bench: Bench) -> None:
    reply = bench.runtime.submit(lambda machine, now_ms: Result(None, ("a",), effects=("tell",)))
    bench.runtime.unload(ApiError(ErrorCode.not_coordinator, "another leads"))
    bench.log.commit()
    assert bench.performed == []
    assert isinstance(reply.exception(), ApiError)


def test_replay_performs_nothing() -> None:
    bench = Bench("a", "b").load()
    assert bench.runtime.machine.words == ["a", "b"]
    assert bench.performed == []
    bench.loop.close()


def test_a_read_waits_for_the_state_that_it_saw(bench: Bench) -> None:
    assert bench.count().result() == 0
    bench.add("a")
    read = bench.count()
    assert not read.done()
    bench.log.commit()
    assert read.result() == 1


def test_replies_come_in_order(bench: Bench) -> None:
    answered: list[int] = []
    for word in "abc":
        bench.add(word).add_done_callback(lambda reply: answered.append(reply.result()))
    bench.log.commit()
    bench.rounds()
    assert answered == [1, 2, 3]


def test_a_refusal_changes_nothing(bench: Bench) -> None:
    reply = bench.runtime.submit(lambda machine, now_ms: machine.refuse())
    assert refusal_of(reply) is ErrorCode.invalid_request
    assert bench.log.stored == []


def test_a_deferred_response_comes_with_the_commit_of_what_completes_it(bench: Bench) -> None:
    waiter = bench.runtime.submit(lambda machine, now_ms: machine.wait())
    bench.add("a")
    assert not waiter.done()
    bench.log.commit()
    assert waiter.result() == "a"


def test_loading_replays_what_is_committed() -> None:
    bench = Bench("a", "b").load()
    assert bench.runtime.machine.words == ["a", "b"]
    assert bench.runtime.machine.loaded_at_ms == 100
    bench.loop.close()


def test_nothing_is_accepted_before_it_is_loaded() -> None:
    bench = Bench("a")
    reply = bench.count()
    assert refusal_of(reply) is ErrorCode.coordinator_load_in_progress
    with pytest.raises(ApiError):
        _ = bench.runtime.machine
    bench.loop.close()


def test_a_record_that_cannot_be_read_stops_the_load() -> None:
    bench = Bench("a", "bad")
    with pytest.raises(ValueError, match="record at offset 1: not a word"):
        bench.load()
    bench.loop.close()


def test_a_failed_append_fails_all_that_waits_and_loads_again(bench: Bench) -> None:
    first = bench.add("a")
    bench.log.commit()
    waiting = bench.runtime.submit(lambda machine, now_ms: machine.wait())
    uncommitted = bench.add("b")
    bench.log.append_error = ApiError(ErrorCode.kafka_storage_error, "disk full")
    failed = bench.add("c")
    assert first.result() == 1
    for reply in (waiting, uncommitted, failed):
        assert refusal_of(reply) is ErrorCode.kafka_storage_error
    bench.log.append_error = None
    bench.rounds()
    assert bench.runtime.machine.words == ["a"]
    retried = bench.add("c")
    bench.log.commit()
    assert retried.result() == 2


def test_while_appends_go_on_failing_the_log_is_not_read_again_and_again(bench: Bench) -> None:
    bench.log.append_error = ApiError(ErrorCode.kafka_storage_error, "disk full")
    bench.add("a")
    bench.rounds()
    assert bench.count().result() == 0
    bench.add("a")
    bench.rounds(20)
    assert refusal_of(bench.count()) is ErrorCode.coordinator_load_in_progress


@pytest.mark.parametrize(
    ("code", "longest_s"),
    [(ErrorCode.kafka_storage_error, 30), (ErrorCode.coordinator_not_available, 1)],
)
def test_how_long_it_waits_after_many_failures(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, code: ErrorCode, longest_s: int
) -> None:
    delays_s: list[float] = []

    async def sleep(delay_s: float) -> None:
        delays_s.append(delay_s)

    monkeypatch.setattr("ottla.runtime.machine_runtime.asyncio.sleep", sleep)
    bench.log.append_error = ApiError(code)
    for _ in range(8):
        assert refusal_of(bench.add("a")) is code
        bench.rounds(10)
    assert max(delays_s) == longest_s


@pytest.mark.parametrize(
    ("code", "level"),
    [
        (ErrorCode.kafka_storage_error, "ERROR"),
        (ErrorCode.coordinator_not_available, "WARNING"),
        (ErrorCode.not_coordinator, "INFO"),
    ],
)
def test_that_records_are_refused_is_told_once(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    code: ErrorCode,
    level: str,
) -> None:
    async def sleep(_: float) -> None:
        pass

    monkeypatch.setattr("ottla.runtime.machine_runtime.asyncio.sleep", sleep)
    caplog.set_level("INFO")
    for _ in range(2):
        for _ in range(3):
            bench.log.append_error = ApiError(code, "not now")
            assert refusal_of(bench.add("a")) is code
            bench.rounds(10)
        bench.log.append_error = None
        bench.add("b")
        bench.add("c")
    logged = [record for record in caplog.records if record.name == logger.name]
    lines = [(record.levelname, record.getMessage()) for record in logged]
    refused, taken = "words-0 refuses records now: not now", "words-0 accepts records again"
    assert lines == [(level, refused), ("INFO", taken)] * 2


def test_a_machine_whose_replay_fails_is_made_again_from_the_log(bench: Bench) -> None:
    machine: Any = bench.runtime.machine

    def fail(record: object, timestamp_ms: int) -> None:
        raise AssertionError("a bug")

    machine.replay = fail
    with pytest.raises(AssertionError):
        bench.add("a")
    bench.log.committed_offset = bench.log.next_offset
    bench.rounds()
    assert bench.runtime.machine is not machine
    assert bench.runtime.machine.words == ["a"]


def test_a_failed_log_is_loaded_again(bench: Bench) -> None:
    reply = bench.add("a")
    bench.log.listener.on_failed(OSError("gone"))
    assert refusal_of(reply) is ErrorCode.kafka_storage_error
    bench.rounds()
    assert bench.runtime.machine.words == []
    assert bench.failures == []


def test_a_machine_that_cannot_be_loaded_again_is_reported(bench: Bench) -> None:
    bench.log.load_error = OSError("gone")
    bench.log.listener.on_failed(OSError("gone"))
    bench.rounds()
    assert bench.failures == [bench.log.load_error]


def test_a_log_that_fails_after_the_unload_concerns_nobody(bench: Bench) -> None:
    bench.runtime.unload(ApiError(ErrorCode.not_coordinator))
    bench.log.listener.on_failed(OSError("gone"))
    bench.rounds()
    assert refusal_of(bench.count()) is ErrorCode.coordinator_load_in_progress


def test_an_unloaded_machine_answers_with_the_reason(bench: Bench) -> None:
    reply = bench.add("a")
    bench.runtime.unload(ApiError(ErrorCode.not_coordinator))
    assert refusal_of(reply) is ErrorCode.not_coordinator
    assert refusal_of(bench.count()) is ErrorCode.coordinator_load_in_progress


def test_a_timer_is_an_operation(bench: Bench) -> None:
    timers = bench.runtime.machine.timers
    timers.schedule("later", 100, lambda now_ms: Result(None, (f"at {now_ms}",)))
    bench.rounds()
    assert bench.runtime.machine.words == ["at 100"]


def test_a_timer_is_told_its_deadline_if_the_clock_is_behind_it(bench: Bench) -> None:
    """The loop rounds delays, and the clock can be set back; a machine must not wait forever."""
    timers = bench.runtime.machine.timers
    timers.schedule("later", 101, lambda now_ms: Result(None, (f"at {now_ms}",)))
    while not bench.runtime.machine.words:
        bench.rounds()
    assert bench.clock.now_ms() == 100
    assert bench.runtime.machine.words == ["at 101"]


def test_a_timer_that_is_scheduled_again_or_cancelled_does_not_fire(bench: Bench) -> None:
    timers = bench.runtime.machine.timers
    timers.schedule("replaced", 100, lambda now_ms: Result(None, ("first",)))
    timers.schedule("replaced", 100, lambda now_ms: Result(None, ("second",)))
    timers.schedule("cancelled", 100, lambda now_ms: Result(None, ("never",)))
    timers.cancel("cancelled")
    bench.rounds()
    assert bench.runtime.machine.words == ["second"]


@pytest.mark.parametrize(
    ("code", "is_told"), [(ErrorCode.not_coordinator, False), (ErrorCode.invalid_request, True)]
)
def test_only_a_timer_that_the_machine_refuses_is_told_of(
    bench: Bench, caplog: pytest.LogCaptureFixture, code: ErrorCode, is_told: bool
) -> None:
    """A timer that finds its machine gone is scheduled again by the next one."""

    def refuse(_: int) -> Result[None]:
        raise ApiError(code, "no")

    bench.runtime.machine.timers.schedule("later", 100, refuse)
    bench.rounds()
    assert ("a timer had no effect: no" in caplog.text) is is_told


def test_timers_die_with_their_machine(bench: Bench) -> None:
    timers = bench.runtime.machine.timers
    timers.schedule("old", 100, lambda now_ms: Result(None, ("never",)))
    bench.log.listener.on_failed(OSError("gone"))
    bench.rounds()
    assert bench.runtime.machine.words == []
