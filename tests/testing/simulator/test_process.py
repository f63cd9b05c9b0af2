import asyncio

from ottla.testing.simulator.host import Host
from ottla.testing.simulator.network import Network
from ottla.testing.simulator.process import Process
from ottla.testing.simulator.scheduler import Scheduler


def new_process(seed: int = 0) -> tuple[Scheduler, Process]:
    scheduler = Scheduler(seed)
    return scheduler, Host("one", Network(scheduler), drift_max=0.0).start_process()


def test_a_sleep_takes_simulated_time_only() -> None:
    scheduler, process = new_process()
    woken: list[tuple[str, float]] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append((name, round(scheduler.now, 6)))

    process.create_task(sleep("late", 3600.0))
    process.create_task(sleep("early", 1.0))
    scheduler.run_until(10_000.0)

    assert woken == [("early", 1.0), ("late", 3600.0)]


def test_a_fast_clock_wakes_early() -> None:
    scheduler = Scheduler(1)
    host = Host("one", Network(scheduler), drift_max=0.1)
    process = host.start_process()
    process.create_task(asyncio.sleep(100.0))
    started = process.time()
    scheduler.run_until(200.0)

    rate = (process.time() - started) / 200.0
    assert rate != 1.0
    assert abs(rate - 1.0) <= 0.1


def test_a_paused_process_does_what_is_due_when_it_goes_on() -> None:
    scheduler, process = new_process()
    woken: list[float] = []

    async def sleep() -> None:
        await asyncio.sleep(1.0)
        woken.append(round(scheduler.now, 6))

    process.create_task(sleep())
    process.pause()
    scheduler.run_until(5.0)
    assert woken == []
    process.resume()
    scheduler.run_until(20.0)

    assert woken == [6.0]  # The sleep itself began when it resumed.


def test_nothing_runs_in_a_process_after_its_death() -> None:
    scheduler, process = new_process()
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(1.0)
        finally:
            seen.append("finally")

    process.create_task(work())
    process.call_later(1.0, seen.append, "timer")
    scheduler.run_until(0.5)
    process.host.kill()
    scheduler.run_until(5.0)

    assert seen == []
    process.host.dispose()


def test_a_job_is_done_later_and_known_to_be_done_later_still() -> None:
    scheduler, process = new_process()
    seen: list[tuple[str, float]] = []

    async def work() -> None:
        await process.run_in_executor(None, lambda: seen.append(("runs", scheduler.now)))
        seen.append(("known", scheduler.now))

    process.create_task(work())
    scheduler.run_until(1.0)

    (runs, ran_at), (known, known_at) = seen
    assert (runs, known) == ("runs", "known")
    assert 0.0 < ran_at < known_at
