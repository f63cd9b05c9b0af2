"""The wire client against a real broker, or the one named by OTTLA_TEST_BOOTSTRAP."""

from collections.abc import Iterator

import pytest
from tests.client.topics import create_topic

from ottla.client.wire.cluster import Cluster


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    with Cluster(bootstrap, retry_timeout_ms=120_000) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return create_topic(cluster)
