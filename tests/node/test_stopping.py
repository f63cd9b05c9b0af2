import asyncio

import pytest
from tests.log_messages import messages_of

from ottla.node import stopping
from ottla.node.stopping import Stopping

TIMEOUT_S = 120  # For things that are instant on an idle machine.


def test_one_budget_is_for_all_waits() -> None:
    now = 100.0
    stop = Stopping(5.0, lambda: now)
    assert stop.left_s == 5.0
    now += 4.0
    assert stop.left_s == 1.0
    now += 4.0
    assert stop.left_s == 0.0


def test_it_is_said_what_is_waited_for_if_that_takes_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stopping, "PATIENCE_S", 0.0)
    caplog.set_level("INFO")

    async def main() -> str:
        async def work() -> str:
            async with asyncio.timeout(TIMEOUT_S):
                while not messages_of("ottla.node.stopping", caplog):  # noqa: ASYNC110
                    await asyncio.sleep(0)
            return "done"

        return await Stopping(5.0, asyncio.get_running_loop().time).wait("the tide", work())

    assert asyncio.run(main()) == "done"
    assert messages_of("ottla.node.stopping", caplog) == ["stopping: waiting for the tide"]


def test_what_is_quick_is_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def main() -> None:
        await Stopping(5.0, asyncio.get_running_loop().time).wait("the tide", asyncio.sleep(0))

    asyncio.run(main())
    assert messages_of("ottla.node.stopping", caplog) == []
