from collections.abc import Iterator

import pytest

from ottla.testing import EmbeddedBroker


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker
