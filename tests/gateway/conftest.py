"""A real gateway for the run's broker, or the one named by OTTLA_TEST_BOOTSTRAP."""

import itertools
import os
from collections.abc import Iterator

import httpx
import pytest
from tests.broker_process import LOG_CHARACTERS_SHOWN
from tests.gateway.gateway_process import PATIENT, GatewayProcess

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.client.wire.topics import ensure_topic

_numbers = itertools.count()


@pytest.fixture(scope="session")
def gateway(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """One per run; a test that stops or kills one creates its own."""
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), bootstrap) as process:
        yield process


@pytest.fixture
def http(gateway: GatewayProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=gateway.url, timeout=PATIENT) as client:
        yield client
    assert "Traceback" not in gateway.log_text(), gateway.log_text()[-LOG_CHARACTERS_SHOWN:]


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A new topic with two partitions."""
    return make_topic(bootstrap)


def make_topic(bootstrap: str, partitions: int = 2, **config: str) -> str:
    """Each partition has a leader; `cleanup_policy="compact"` for cleanup.policy."""
    name = f"gateway-{os.getpid()}-{next(_numbers)}"
    configs = {key.replace("_", "."): value for key, value in config.items()}
    with Cluster(bootstrap, retry_timeout_ms=120_000) as cluster:
        ensure_topic(cluster, name, partitions=partitions, config=configs)
        topic_partitions = [TopicPartition(name, index) for index in range(partitions)]
        list_offsets(cluster, dict.fromkeys(topic_partitions, LATEST))
    return name
