import asyncio
from types import SimpleNamespace

import pytest

from ottla.node import leaving
from ottla.node.leaving import Remaining, leave_in_order
from ottla.protocol.addresses import Address

NEVER = 3600.0


@pytest.fixture
def patient(monkeypatch):
    """Nothing ends by time."""
    monkeypatch.setattr(leaving, "NO_CONTROLLER_TIMEOUT_S", NEVER)
    return monkeypatch


class Leave:
    """The call that waits until the node may stop."""

    def __init__(self):
        self.state = "not asked"

    async def __call__(self):
        self.state = "asked"
        try:
            await asyncio.sleep(NEVER)
        except asyncio.CancelledError:
            self.state = "given up"
            raise


def run(leave, is_needed=lambda: True, has_controller=lambda: True, timeout_s=NEVER):
    async def main():
        await leave_in_order(leave, is_needed, has_controller, timeout_s)
        await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.usefixtures("patient")
def test_a_node_leaves_when_it_may():
    asked = []

    async def leave():
        asked.append(True)

    run(leave)
    assert asked == [True]


def test_a_node_without_others_just_stops():
    leave = Leave()
    run(leave, is_needed=lambda: False)
    assert leave.state == "not asked"


@pytest.mark.usefixtures("patient")
def test_the_last_of_those_that_stop_waits_for_nobody():
    leave = Leave()
    others = iter([True, True, True])
    run(leave, is_needed=lambda: next(others, False))
    assert leave.state == "given up"


def test_a_controller_that_does_not_come_is_not_waited_for(patient, caplog):
    patient.setattr(leaving, "NO_CONTROLLER_TIMEOUT_S", 0.0)
    leave = Leave()
    run(leave, has_controller=lambda: False)
    assert leave.state == "given up"
    assert "stopping without handing over" in caplog.text


@pytest.mark.usefixtures("patient")
def test_a_controller_that_does_not_answer_is_not_waited_for(caplog):
    leave = Leave()
    run(leave, timeout_s=0.0)
    assert leave.state == "given up"
    assert "stopping without handing over" in caplog.text


@pytest.mark.usefixtures("patient")
def test_a_failure_is_not_hidden():
    async def leave():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(leave)


def test_nodes_whose_processes_have_ended_are_not_waited_for():
    ended = set()
    remaining = Remaining(
        1,
        SimpleNamespace(leader_id=2, address=Address("h", 2)),
        SimpleNamespace(active_brokers=lambda: [SimpleNamespace(broker_id=n) for n in (1, 2, 3)]),
        SimpleNamespace(is_refused=ended.__contains__),
        lambda broker_id: Address("h", broker_id),
    )
    assert remaining.others()
    assert remaining.controller()
    ended.add(Address("h", 2))
    assert remaining.others()
    assert not remaining.controller()
    ended.add(Address("h", 3))
    assert not remaining.others()
