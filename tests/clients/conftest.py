import itertools
import time
from collections.abc import Callable, Iterator

import kafka.codec
import pytest
from tests.clients.aiokafka_client import AiokafkaClient
from tests.clients.client import TIMEOUT_S, Client
from tests.clients.confluent_client import ConfluentClient
from tests.clients.kafka_python_client import KafkaPythonClient
from tests.clients.requests import list_offsets, listed
from tests.clients.wire import Wire
from tests.conftest import EXTERNAL_BOOTSTRAP

CLIENTS: dict[str, Callable[[str], Client]] = {
    "confluent": ConfluentClient,
    "kafka-python": KafkaPythonClient,
    "aiokafka": AiokafkaClient,
}

CreateTopic = Callable[..., str]

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "clients" in item.path.parts:
            item.add_marker(pytest.mark.clients)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, bootstrap: str) -> Client:
    return CLIENTS[request.param](bootstrap)


@pytest.fixture
def confluent(bootstrap: str) -> ConfluentClient:
    return ConfluentClient(bootstrap)


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    with Wire(bootstrap) as connection:
        yield connection


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """A topic name that no other test uses; also not one of an earlier run on the same broker."""
    run_id = request.config.stash.setdefault(_run_id, f"{id(request.config):x}")
    return lambda: f"test-{run_id}-{next(_numbers)}"


_run_id = pytest.StashKey[str]()


@pytest.fixture
def create_topic(
    bootstrap: str, confluent: ConfluentClient, new_name: Callable[[], str]
) -> CreateTopic:
    """`create_topic(partitions=3, **{"cleanup.policy": "compact"})` returns the topic's name."""

    def create(partitions: int = 1, **config: str) -> str:
        topic = new_name()
        confluent.create_topic(topic, partitions, config)
        with Wire(bootstrap) as wire:
            for partition in range(partitions):
                await_leader(wire, topic, partition)
        return topic

    return create


@pytest.fixture
def topic(create_topic: CreateTopic) -> str:
    return create_topic()


def await_leader(wire: Wire, topic: str, partition: int) -> None:
    """Kafka answers CreateTopics a moment before its leaders are ready; clients retry."""
    while listed(wire.call(list_offsets(topic, -1, partition=partition))).error_code:
        pass


def await_value(read: Callable[[], object], expected: object) -> None:
    """Kafka answers a change a moment before its brokers apply it; Ottla does not."""
    deadline = time.monotonic() + (TIMEOUT_S if EXTERNAL_BOOTSTRAP else 0)
    while (found := read()) != expected and time.monotonic() < deadline:
        pass
    assert found == expected


def has_codec(client: Client, codec: str) -> bool:
    if not isinstance(client, KafkaPythonClient) or codec == "none":
        return True
    return bool(getattr(kafka.codec, f"has_{codec}")())
