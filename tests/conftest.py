"""Fixtures that more than one package's tests use.

`broker` is a real broker process, one for the whole run. With OTTLA_TEST_BOOTSTRAP=host:port the
tests talk to that broker instead: run against Apache Kafka they say whether a test describes Kafka.
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
# for 15 seconds and more: a test need not wait so long.
IMPATIENT = (
    "--set",
    "group.initial.rebalance.delay.ms=0",
    "--set",
    "group.share.min.record.lock.duration.ms=1000",
)

# Tests start hundreds of processes, each of which would compile every module again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Commands give up on a broker that is silent for seconds, and on a busy machine a good one may be.
os.environ.setdefault("OTTLA_CONNECT_TIMEOUT", "240")
# The profiles of whoever runs the tests are no concern of theirs.
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir(), "ottla-tests-have-no-profiles"))

# A shell starts jobs in the background with ctrl-c ignored, and the commands under test inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The machine that runs the tests may be busy, and then nothing is said by the time a test takes.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

_running = pytest.StashKey[BrokerProcess | ExternalBroker]()

# A test that asks for one of these is of real processes, and `make test-fast` leaves it out.
_FIXTURES_OF_PROCESSES = frozenset(
    {"broker", "group_broker", "start_cluster", "running", "bench", "without_two_phase"}
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: nothing of it is garbage, and there is a lot to look at
    in each collection of garbage."""
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
    # pytest-xdist hands them out in this order, and one that begins last runs alone for long.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def _shares_a_fixture(item: pytest.Item) -> bool:
    """Whether one is made for its module: in each process that runs a part of the module anew."""
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
    """As they were: a command that a test runs in this process configures them for good, with a
    handler that writes to what pytest closes after the test."""
    kept = [logging.getLogger(name) for name in ("ottla", "uvicorn", "asyncio")]
    before = [(each.handlers[:], each.level, each.propagate) for each in kept]
    yield
    for each, (handlers, level, propagate) in zip(kept, before, strict=True):
        each.handlers[:] = handlers
        each.setLevel(level)
        each.propagate = propagate


@pytest.fixture
def own_broker(broker: BrokerProcess | ExternalBroker) -> BrokerProcess:
    """The broker, for a test of what only Ottla does."""
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
    """Damage that a start finds leaves nothing to serve of the log, as if nobody knew its end."""

    def refuse(self: Any, segment: Segment, position: int, reason: str) -> NoReturn:
        raise CorruptLog(segment.path, position, 0, reason)

    monkeypatch.setattr("ottla.storage.recovery.Recovery._pass_over", refuse)
