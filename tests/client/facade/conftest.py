"""The facade against a broker in this process."""

import itertools
from collections.abc import Iterator

import pytest

from ottla.testing import EmbeddedBroker

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def module_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def broker(module_broker: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    module_broker.topic_prefix = f"test-{next(_numbers)}-"
    yield module_broker
    module_broker.heal()


@pytest.fixture
def servers(broker: EmbeddedBroker) -> str:
    return broker.bootstrap_servers
