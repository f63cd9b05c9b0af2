import asyncio
import logging

import pytest

from ottla.runtime.supervisor import Supervisor


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("wrong state")


def test_a_failed_task_is_logged_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> list[BaseException]:
        failures: list[BaseException] = []
        supervisor = Supervisor(asyncio.get_running_loop(), failures.append)
        task = supervisor.start("retention", broken())
        await asyncio.wait([task])
        await asyncio.sleep(0)
        return failures

    with caplog.at_level(logging.ERROR):
        (failure,) = asyncio.run(run())
    assert str(failure) == "wrong state"
    assert "retention failed" in caplog.text


def test_stopping_cancels_all_and_reports_nothing() -> None:
    async def run() -> list[BaseException]:
        failures: list[BaseException] = []
        supervisor = Supervisor(asyncio.get_running_loop(), failures.append)
        tasks = [supervisor.start(str(number), forever()) for number in range(3)]
        await asyncio.sleep(0)
        await supervisor.stop()
        assert all(task.cancelled() for task in tasks)
        return failures

    assert asyncio.run(run()) == []


def test_a_task_that_ends_is_forgotten() -> None:
    async def run() -> None:
        supervisor = Supervisor(asyncio.get_running_loop(), lambda error: None)
        await supervisor.start("short", asyncio.sleep(0))
        await supervisor.stop()

    asyncio.run(run())


def test_nothing_starts_after_the_stop() -> None:
    async def run() -> None:
        supervisor = Supervisor(asyncio.get_running_loop(), lambda error: None)
        await supervisor.stop()
        with pytest.raises(RuntimeError, match="late was started"):
            supervisor.start("late", forever())

    asyncio.run(run())
