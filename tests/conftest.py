"""Fixtures that more than one package's tests use.

`broker` is a real broker process, one for the whole run. With OTTLA_TEST_BOOTSTRAP=host:port the
tests talk to that broker instead: run against Apache Kafka they show whether a test matches Kafka's
behavior.
"""

import gc
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from tests.broker_process import (
    LOG_CHARACTERS_SHOWN,
    BrokerProcess,
    ExternalBroker,
)

from ottla.storage.errors import CorruptLog
from ottla.storage.segment import Segment

EXTERNAL_BOOTSTRAP = os.environ.get("OTTLA_TEST_BOOTSTRAP")

# A new group waits three seconds for more members before it starts, and a share group locks records
# for 15 seconds or more: tests need not wait that long.
IMPATIENT = (
    "--set",
    "group.initial.rebalance.delay.ms=0",
    "--set",
    "group.share.min.record.lock.duration.ms=1000",
)

# Tests start hundreds of processes; each would compile every module again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Commands give up on a broker that is silent for seconds; on a busy machine a good one may be.
os.environ.setdefault("OTTLA_CONNECT_TIMEOUT", "240")
# Tests do not use the profiles of the user who runs them.
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir(), "ottla-tests-have-no-profiles"))

# A shell starts jobs in the background with ctrl-c ignored, and the commands under test inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# On a busy machine, a test's duration means nothing.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

_running = pytest.StashKey[BrokerProcess | ExternalBroker]()

# A test that asks for one of these is of real processes, and `make test-fast` leaves it out.
_FIXTURES_OF_PROCESSES = frozenset(
    {"broker", "group_broker", "start_cluster", "running", "bench", "without_two_phase"}
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collected tests stay to the end: freezing them keeps them out of every garbage collection."""
    gc.disable()
    try:
        result = yield
    finally:
        gc.enable()
    gc.freeze()
    return result


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not _FIXTURES_OF_PROCESSES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.process)
        if _shares_a_fixture(item) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    # pytest-xdist hands them out in this order; a long one that starts last would run alone.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _shares_a_fixture(item: pytest.Item) -> bool:
    """Whether the module has a module-scoped fixture, which each worker would create again."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.values() if info is not None else ()
    return any(definition[-1].scope == "module" for definition in definitions)


@pytest.fixture(scope="session")
def broker(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess | ExternalBroker]:
    if EXTERNAL_BOOTSTRAP:
        yield ExternalBroker(EXTERNAL_BOOTSTRAP)
        return
    process = BrokerProcess(tmp_path_factory.mktemp("broker"), *IMPATIENT)
    pytestconfig.stash[_running] = process
    with process:
        yield process


@pytest.fixture(scope="session")
def bootstrap(broker: BrokerProcess | ExternalBroker) -> str:
    return broker.bootstrap


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """Restores them: a command that a test runs in this process configures them for good.

    Its handler writes to a stream that pytest closes after the test.
    """
    kept = [logging.getLogger(name) for name in ("ottla", "uvicorn", "asyncio")]
    before = [(each.handlers[:], each.level, each.propagate) for each in kept]
    yield
    for each, (handlers, level, propagate) in zip(kept, before, strict=True):
        each.handlers[:] = handlers
        each.setLevel(level)
        each.propagate = propagate


@pytest.fixture
def own_broker(broker: BrokerProcess | ExternalBroker) -> BrokerProcess:
    """The broker, for tests of Ottla-only features."""
    if isinstance(broker, ExternalBroker):
        pytest.skip("not a test of Kafka's behaviour")
    return broker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    process = item.config.stash.get(_running, None)
    if report.failed and process is not None and "broker" in getattr(item, "fixturenames", ()):
        report.sections.append(("broker log", process.log_text()[-LOG_CHARACTERS_SHOWN:]))
    return report


@pytest.fixture
def nothing_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage found at startup leaves nothing of the log to serve, as if its end were unknown."""

    def refuse(self: Any, segment: Segment, position: int, reason: str) -> NoReturn:
        raise CorruptLog(segment.path, position, 0, reason)

    monkeypatch.setattr("ottla.storage.recovery.Recovery._pass_over", refuse)
