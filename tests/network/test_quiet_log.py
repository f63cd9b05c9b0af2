import logging

import pytest
from tests.kits.manual_clock import ManualClock

from ottla.network.quiet_log import QuietLog


def test_one_line_of_a_kind_per_interval(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    log = QuietLog(logging.getLogger("quiet"), clock.monotonic_ms)
    for number in range(5):
        log.warn_rarely("kind", "number %d", number)
    log.warn_rarely("other", "another kind")
    clock.advance(1000)
    log.warn_rarely("kind", "number %d", 5)
    clock.advance(1000)
    log.warn_rarely("kind", "number %d", 6)
    assert [record.getMessage() for record in caplog.records if record.name == "quiet"] == [
        "number 0",
        "another kind",
        "number 5 (4 more like this)",
        "number 6",
    ]
