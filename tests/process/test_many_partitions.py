"""Many partitions: bounded open files, a clean restart, and nothing lost."""

import contextlib
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S
from tests.clients.requests import metadata
from tests.clients.wire import Wire
from tests.process.beside import ClientBeside, open_files, resident_bytes
from tests.process.stored import find_offset

# One worker: the partitions take longer to create than to check.
pytestmark = pytest.mark.xdist_group("many partitions")

TOPICS, PARTITIONS = 100, 10
OPEN_FILES_MAX = 256  # As `ulimit -n 256`; the partitions have a thousand files.
MEMORY_MAX = 250 * 1024 * 1024
NAMES = [f"topic-{number}" for number in range(TOPICS)]
PLACES = [(name, partition) for name in NAMES for partition in range(PARTITIONS)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("many")
    with BrokerProcess(directory, open_files_max=OPEN_FILES_MAX) as process:
        _create_topics(process.bootstrap)
        _write(process.bootstrap)
        yield process


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, PARTITIONS, 1) for name in NAMES]
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT_S)


def _write(bootstrap: str) -> None:
    """One record to every partition."""
    failures: list[object] = []
    # Idempotent: a connection beyond the limit may close after its request was served.
    settings = {"bootstrap.servers": bootstrap, "log_level": 0, "enable.idempotence": True}
    producer = Producer(settings)
    for topic, partition in PLACES:
        producer.produce(
            topic,
            b"value",
            partition=partition,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == []


def _ends(bootstrap: str) -> set[int]:
    with Wire(bootstrap) as wire:
        return {find_offset(wire, topic, partition=partition) for topic, partition in PLACES}


def test_files_and_memory_are_bounded(broker: BrokerProcess) -> None:
    assert open_files(broker) < OPEN_FILES_MAX
    assert resident_bytes(broker) < MEMORY_MAX
    assert min(_ends(broker.bootstrap)) >= 1


def test_connections_never_take_the_files_of_logs(broker: BrokerProcess) -> None:
    """More connections than descriptors; the logs keep working."""
    (before,) = _ends(broker.bootstrap)
    with contextlib.ExitStack() as stack:
        with ClientBeside(broker.bootstrap) as beside:
            beside.await_rounds(1)
            for _ in range(2 * OPEN_FILES_MAX):
                stack.enter_context(Wire(broker.bootstrap))
            beside.await_rounds(20)
        assert "goes offline" not in broker.log_text()
    _write_when_admitted(broker.bootstrap)
    assert _ends(broker.bootstrap) == {before + 1}


def _write_when_admitted(bootstrap: str) -> None:
    """The broker may not have noticed yet that the crowd is gone."""
    while True:
        with Wire(bootstrap) as wire:
            try:
                assert wire.call(metadata()).brokers
                break
            except (EOFError, ConnectionError):
                continue
    _write(bootstrap)


def test_a_restart_keeps_everything(broker: BrokerProcess) -> None:
    before = _ends(broker.bootstrap)
    for ending in (broker.stop, broker.kill):
        ending()
        broker.start()
        assert _ends(broker.bootstrap) == before
    log = broker.log_text()
    assert " ERROR " not in log
    assert "Traceback" not in log


def test_metadata_of_all_topics(broker: BrokerProcess) -> None:
    with Wire(broker.bootstrap) as wire:
        topics = wire.call(metadata(*NAMES)).topics
    assert [topic.name for topic in topics] == NAMES
    assert all(len(topic.partitions) == PARTITIONS for topic in topics)
