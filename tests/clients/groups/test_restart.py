"""A group's commits survive the broker's death, and the group continues by itself."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S, Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.groups.conftest import FAST_GROUP_ARGUMENTS, committed
from tests.clients.groups.members import POLLERS, Group

pytestmark = [
    pytest.mark.process,
    # Sockets that clients leak when the broker is gone.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TOPIC, GROUP = "orders", "readers"
RECORDS = 3_000


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collects what the clients leak, so that it does not fail a later test."""
    yield
    gc.collect()


@pytest.fixture
def restartable(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path, *FAST_GROUP_ARGUMENTS) as process:
        yield process


def fill(bootstrap: str, partitions: int) -> ConfluentClient:
    client = ConfluentClient(bootstrap)
    client.create_topic(TOPIC, partitions)
    client.produce(TOPIC, [Sent(partition=number % partitions) for number in range(RECORDS)])
    return client


def committed_offsets(bootstrap: str, partitions: int) -> list[int]:
    found = committed(ConfluentClient(bootstrap), GROUP)
    return [found[index][0] if index in found else 0 for index in range(partitions)]


class Committer(threading.Thread):
    """Commits one record after another, and notes what the broker acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.acknowledged = 0
        self.many = threading.Event()
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0}
        )
        self.start()

    def run(self) -> None:
        try:
            for offset in range(1, RECORDS):
                position = TopicPartition(TOPIC, 0, offset)
                self._consumer.commit(offsets=[position], asynchronous=False)
                self.acknowledged = offset
                if offset == 50:
                    self.many.set()
        except KafkaException:
            pass  # The broker is gone.


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_an_acknowledged_commit_is_never_lost(restartable: BrokerProcess, ending: str) -> None:
    fill(restartable.bootstrap, 1)
    committer = Committer(restartable.bootstrap)
    assert committer.many.wait(TIMEOUT_S)
    getattr(restartable, ending)()
    acknowledged = committer.acknowledged
    restartable.start()
    [found] = committed_offsets(restartable.bootstrap, 1)
    assert found >= acknowledged >= 50


@pytest.mark.parametrize("client", POLLERS)
def test_a_group_goes_on_after_the_broker_was_killed(
    restartable: BrokerProcess, client: str
) -> None:
    confluent = fill(restartable.bootstrap, 2)
    group = Group()
    member = group.join(lambda: POLLERS[client](restartable.bootstrap, GROUP, TOPIC))
    group.wait_for(lambda: len(member.received) > 100)
    member.commit()
    before = committed_offsets(restartable.bootstrap, 2)
    restartable.kill()
    restartable.start()
    assert committed_offsets(restartable.bootstrap, 2) == before
    confluent.produce(TOPIC, [Sent(partition=number % 2) for number in range(100)])
    total = RECORDS + 100
    group.wait_for(lambda: len(set(member.received)) == total)
    member.commit()
    assert committed_offsets(restartable.bootstrap, 2) == [total // 2] * 2
    group.leave()
