import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.node import leaving
from ottla.node.leaving import Remaining, leave_in_order
from ottla.protocol.addresses import Address

NEVER = 3600.0


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing times out."""
    monkeypatch.setattr(leaving, "NO_CONTROLLER_TIMEOUT_S", NEVER)
    return monkeypatch


class Leave:
    """The call that waits until the node may stop."""

    def __init__(self) -> None:
        self.state = "not asked"

    async def __call__(self) -> None:
        self.state = "asked"
        try:
            await asyncio.sleep(NEVER)
        except asyncio.CancelledError:
            self.state = "given up"
            raise


def run(
    leave: Callable[[], Awaitable[None]],
    is_needed: Callable[[], bool] = lambda: True,
    has_controller: Callable[[], bool] = lambda: True,
    timeout_s: float = NEVER,
) -> None:
    async def main() -> None:
        await leave_in_order(leave, is_needed, has_controller, timeout_s)
        await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.usefixtures("patient")
def test_a_node_leaves_when_it_may() -> None:
    asked = []

    async def leave() -> None:
        asked.append(True)

    run(leave)
    assert asked == [True]


def test_a_node_without_others_just_stops() -> None:
    leave = Leave()
    run(leave, is_needed=lambda: False)
    assert leave.state == "not asked"


@pytest.mark.usefixtures("patient")
def test_the_last_of_those_that_stop_waits_for_nobody() -> None:
    leave = Leave()
    others = iter([True, True, True])
    run(leave, is_needed=lambda: next(others, False))
    assert leave.state == "given up"


def test_a_controller_that_does_not_come_is_not_waited_for(
    patient: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    patient.setattr(leaving, "NO_CONTROLLER_TIMEOUT_S", 0.0)
    leave = Leave()
    run(leave, has_controller=lambda: False)
    assert leave.state == "given up"
    assert "stopping without handing over" in caplog.text


@pytest.mark.usefixtures("patient")
def test_a_controller_that_does_not_answer_is_not_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    leave = Leave()
    run(leave, timeout_s=0.0)
    assert leave.state == "given up"
    assert "stopping without handing over" in caplog.text


@pytest.mark.usefixtures("patient")
def test_a_failure_is_not_hidden() -> None:
    async def leave() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(leave)


def test_nodes_whose_processes_have_ended_are_not_waited_for() -> None:
    ended: set[Address] = set()
    leadership: Any = SimpleNamespace(leader_id=2, address=Address("h", 2))
    brokers = [SimpleNamespace(broker_id=n) for n in (1, 2, 3)]
    image: Any = SimpleNamespace(active_brokers=lambda: brokers)
    peers: Any = SimpleNamespace(is_refused=ended.__contains__)
    remaining = Remaining(1, leadership, image, peers, lambda broker_id: Address("h", broker_id))
    assert remaining.others()
    assert remaining.controller()
    ended.add(Address("h", 2))
    assert remaining.others()
    assert not remaining.controller()
    ended.add(Address("h", 3))
    assert not remaining.others()
