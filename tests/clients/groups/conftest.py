"""A broker with short group timeouts.

With OTTLA_TEST_BOOTSTRAP an external broker is used, which needs the same settings.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError
from tests.broker_process import BrokerProcess, ExternalBroker
from tests.clients.client import Refused, Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.groups.members import POLLERS, Group, Poller
from tests.conftest import EXTERNAL_BOOTSTRAP

# Rebalances need not wait for more members, and a test may want dead members noticed soon.
FAST_GROUPS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.streams.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 5,
}
FAST_GROUP_ARGUMENTS = [
    argument for key, value in FAST_GROUPS.items() for argument in ("--set", f"{key}={value}")
]


@pytest.fixture(scope="session")
def group_broker(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[BrokerProcess | ExternalBroker]:
    if EXTERNAL_BOOTSTRAP:
        yield ExternalBroker(EXTERNAL_BOOTSTRAP)
        return
    with BrokerProcess(tmp_path_factory.mktemp("groups"), *FAST_GROUP_ARGUMENTS) as process:
        yield process


@pytest.fixture
def bootstrap(group_broker: BrokerProcess | ExternalBroker) -> str:
    return group_broker.bootstrap


@pytest.fixture
def confluent(bootstrap: str) -> ConfluentClient:
    return ConfluentClient(bootstrap)


@pytest.fixture
def group_id() -> str:
    return f"group-{uuid.uuid4()}"


@pytest.fixture
def topic(confluent: ConfluentClient) -> str:
    """Four partitions with 25 records each."""
    name = f"topic-{uuid.uuid4()}"
    confluent.create_topic(name, 4)
    produce(confluent, name, 25)
    return name


def produce(confluent: ConfluentClient, topic: str, count: int, partitions: int = 4) -> None:
    confluent.produce(
        topic, [Sent(partition=number % partitions) for number in range(count * partitions)]
    )


def committed(confluent: ConfluentClient, group_id: str) -> dict[int, tuple[int, str | None]]:
    """librdkafka's admin client does not retry while the coordinator is loading."""
    asked = ConsumerGroupTopicPartitions(group_id)
    while True:
        try:
            found = confluent.wait(confluent.admin.list_consumer_group_offsets([asked])[group_id])
        except Refused as refusal:
            if refusal.code != KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
                raise
        else:
            return {
                topic_partition.partition: (topic_partition.offset, topic_partition.metadata)
                for topic_partition in found.topic_partitions
            }


@pytest.fixture
def group() -> Iterator[Group]:
    with ExitStack() as stack:
        group = Group()
        stack.callback(group.leave)
        yield group


@pytest.fixture(params=POLLERS)
def client(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start(client: str, bootstrap: str, group_id: str, topic: str) -> Callable[[], Poller]:
    """Starts a consumer of the topic in the group."""
    return lambda: POLLERS[client](bootstrap, group_id, topic)
