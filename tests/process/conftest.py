from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.process)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for one test; whatever was done to it, it must still stop cleanly."""
    process = BrokerProcess(tmp_path)
    process.start()
    try:
        yield process
        assert process.stop() == 0, process.log_text()
    finally:
        process.kill()
