"""The activity of an idle node, in virtual time."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.testing.simulator.executor import SimulatedExecutor
from ottla.testing.simulator.membership import Membership
from ottla.testing.simulator.network import Network
from ottla.testing.simulator.scheduler import Scheduler

START_S_MAX = 30.0
SETTLE_S = 10.0
WATCHED_S = 60.0
JOBS_PER_SECOND_MAX = 1.5
TIMERS_PER_SECOND_MAX = 12.0  # Several fire at the same moment.


def test_an_idle_node_hardly_ever_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler(1)
    membership = Membership(Network(scheduler), {}, 1, 1)
    (node,) = membership.nodes
    node.start()
    scheduler.run_until(START_S_MAX, lambda: membership.all_serve)
    scheduler.run_until(scheduler.now + SETTLE_S)
    jobs: list[Callable[..., Any]] = []
    timers: list[float] = []
    submit, process_at = SimulatedExecutor.submit, scheduler.process_at

    def count_job(executor: SimulatedExecutor, job: Callable[..., Any], *args: Any) -> Any:
        jobs.append(job)
        return submit(executor, job, *args)

    def count_timer(when: float, *work: Any) -> None:
        timers.append(when)
        process_at(when, *work)

    monkeypatch.setattr(SimulatedExecutor, "submit", count_job)
    monkeypatch.setattr(scheduler, "process_at", count_timer)
    scheduler.run_until(scheduler.now + WATCHED_S)
    node.kill()
    assert len(jobs) < JOBS_PER_SECOND_MAX * WATCHED_S
    assert len(timers) < TIMERS_PER_SECOND_MAX * WATCHED_S
