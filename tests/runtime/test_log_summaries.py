"""Many changes with one cause are logged in a few lines."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
from tests.log_messages import messages_of

from ottla.runtime.log_summaries import INTERVAL_S, LogSummaries

logger = logging.getLogger("tests.summaries")


class Loop(asyncio.SelectorEventLoop):
    """A loop with a manual clock."""

    now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        for _ in range(3):  # Ready callbacks, and the ones they schedule.
            self.call_soon(self.stop)
            self.run_forever()


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def test_what_happens_at_once_is_one_line(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    summaries = LogSummaries(loop, logger)
    for index in range(2000):
        leader = 1 + 2 * (index % 2)
        summaries.note_partition("node 2 is fenced", "new leader", f"2 -> {leader}", f"t-{index}")
    loop.advance(0)
    assert messages_of(logger.name, caplog) == [
        "node 2 is fenced; new leader of 2000 partitions (2 -> 1: 1000, 2 -> 3: 1000), first t-0"
    ]


def test_more_of_the_same_waits_for_the_interval(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    summaries = LogSummaries(loop, logger)
    for index in range(100):
        summaries.note_partition("a follower has caught up", "isr", "with 3", f"t-{index}")
        loop.advance(INTERVAL_S / 100)
    loop.advance(INTERVAL_S)
    assert messages_of(logger.name, caplog) == [
        "a follower has caught up; isr of t-0 (with 3)",
        "a follower has caught up; isr of 99 partitions (with 3: 99), first t-1",
    ]


def test_another_cause_has_a_line_of_its_own(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    summaries = LogSummaries(loop, logger)
    summaries.note("node 2 is fenced", logging.WARNING)
    summaries.note("node 3 is active")
    loop.advance(0)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "node 2 is fenced"),
        ("INFO", "node 3 is active"),
    ]


def test_nothing_is_kept_of_what_is_over(loop: Loop) -> None:
    summaries = LogSummaries(loop, logger)
    for index in range(1000):
        summaries.note(f"cause {index}")
    loop.advance(0)
    loop.advance(INTERVAL_S)
    assert not summaries._groups
