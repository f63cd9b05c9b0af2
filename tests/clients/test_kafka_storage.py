"""Apache Kafka's own tool reads a node's files, and its broker serves those of a stopped node.

Needs the Kafka that the benchmarks resolve into their cache, and is left out without it.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.peers.kafka import VERSION
from benchmarks.processes import spawn, stop
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S
from tests.clients.transactional import ConfluentProducer
from tests.cluster.processes import wait_until
from tests.fork_server import REPOSITORY
from tests.ports import HOST, ReservedPort

from ottla.groups.absences import AbsenceKey, AbsenceValue, AbsentMember
from ottla.groups.record_codec import GroupRecordCodec
from ottla.machine.record import Record as GroupRecord
from ottla.records.batch import assign, iterate_headers
from ottla.records.builder import Record, build_batch

pytestmark = [pytest.mark.process, pytest.mark.timeout(1800)]

LIBRARIES = REPOSITORY / "benchmarks" / ".cache" / f"kafka-{VERSION}"
TOPICS = ("orders", "state")
RECORDS = 500  # With each codec, in each topic.
CODECS = ("none", "gzip", "lz4", "zstd", "snappy")
DELETED = 100
GROUP = "readers"
# An Ottla node has one listener for everyone; Kafka needs one just for controllers.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:{port},CLIENTS://127.0.0.1:{clients}
controller.listener.names=PLAINTEXT
inter.broker.listener.name=CLIENTS
listener.security.protocol.map=CLIENTS:PLAINTEXT,PLAINTEXT:PLAINTEXT
controller.quorum.bootstrap.servers=localhost:{port}
log.dirs={data}
"""
# FeatureLevelRecord v0, which Kafka's controller needs.
METADATA_VERSION = bytes([1, 12, 0, 17]) + b"metadata.version" + bytes([0, 25, 0])


class Stopped:
    """A node's data, and its contents."""

    def __init__(self, directory: Path) -> None:
        self._broker = BrokerProcess(directory, "--set", "internal.log.segment.bytes=20000")
        self.data = self._broker.data
        self.port = self._broker.port
        with self._broker:
            self.contents, self.committed = self._fill(self._broker.bootstrap)

    def _fill(self, bootstrap: str) -> tuple[list[list[str]], list[str]]:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
        topics = [NewTopic(topic, 2, 1) for topic in TOPICS]
        for created in admin.create_topics(topics).values():
            created.result(TIMEOUT_S)
        for codec in CODECS:
            producer = Producer(
                {"bootstrap.servers": bootstrap, "compression.type": codec, "log_level": 2}
            )
            for number in range(RECORDS):
                for topic in TOPICS:
                    producer.produce(topic, f"{codec} {number}", f"{number % 50}")
            assert producer.flush(TIMEOUT_S) == 0
        transactional = ConfluentProducer(bootstrap, "t")
        for number in range(4):
            transactional.begin()
            transactional.send("orders", number % 2, b"in a transaction")
            (transactional.abort if number % 2 else transactional.commit)()
        deleted = admin.delete_records([TopicPartition("orders", 0, DELETED)])
        assert [future.result(TIMEOUT_S).low_watermark for future in deleted.values()] == [DELETED]
        return contents(bootstrap), commit(bootstrap)


def consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 2,
        }
    )


def contents(bootstrap: str) -> list[list[str]]:
    """The contents of each partition, as a consumer reads them."""
    found = []
    for topic in TOPICS:
        for partition in range(2):
            reader = consumer(bootstrap)
            reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            records: list[str] = []
            while True:
                message = reader.poll(TIMEOUT_S)
                assert message is not None, f"no end of {topic} {partition}"
                error = message.error()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        break
                    continue  # The broker is starting.
                records.append(f"{message.offset()} {message.key()!r} {message.value()!r}")
            reader.close()
            found.append(records)
    return found


def commit(bootstrap: str) -> list[str]:
    reader = consumer(bootstrap)
    reader.subscribe(["orders"])
    while not reader.assignment():
        reader.poll(0.1)
    offsets = [TopicPartition("orders", 0, 150), TopicPartition("orders", 1, 7)]
    reader.commit(offsets=offsets, asynchronous=False)
    reader.close()
    return committed(bootstrap)


def committed(bootstrap: str) -> list[str]:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
    found = asked[GROUP].result(TIMEOUT_S).topic_partitions
    return sorted(
        f"{topic_partition.topic} {topic_partition.partition} {topic_partition.offset}"
        for topic_partition in found
    )


@pytest.fixture(scope="module")
def libraries() -> Path:
    if not (LIBRARIES / "resolved").exists() or shutil.which("java") is None:
        pytest.skip(f"Apache Kafka {VERSION} is not in {LIBRARIES.parent}: `make bench` puts it")
    return LIBRARIES


@pytest.fixture(scope="module")
def stopped(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    assert libraries.exists()
    return Stopped(tmp_path_factory.mktemp("stopped"))


def dump(files: Iterator[Path], *options: str) -> str:
    tool = ["java", "-cp", f"{LIBRARIES}/libs/*", "org.apache.kafka.tools.DumpLogSegments"]
    names = ",".join(str(file) for file in files if file.stat().st_size)
    done = subprocess.run(
        [*tool, *options, "--files", names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for problem in ("Mismatches in", "timestamp mismatch", "out of order", "not found in"):
        assert problem not in done.stderr
    return done.stdout


def test_segments_indexes_and_snapshots_are_read(stopped: Stopped) -> None:
    files = (file for file in stopped.data.glob("[os]*-[0-9]/0*") if file.suffix != ".deleted")
    output = dump(files, "--deep-iteration", "--index-sanity-check")
    assert output.count("| offset: ") >= sum(map(len, stopped.contents))
    assert "passed sanity check" in output
    assert "isvalid: false" not in output


@pytest.mark.usefixtures("libraries")
def test_indexes_of_a_running_node_are_read(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--set", "log.flush.offset.checkpoint.interval.ms=100") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 2})
        for number in range(40):
            producer.produce("orders", bytes(1_000), timestamp=1_700_000_000_000 + number)
            assert producer.flush(TIMEOUT_S) == 0
        directory = broker.data / "orders-0"
        indexes = [directory / f"{0:020}{suffix}" for suffix in (".index", ".timeindex")]
        wait_until(
            lambda: all(index.exists() and index.stat().st_size for index in indexes), "indexes"
        )
        output = dump(directory.glob("0*"), "--deep-iteration")
    assert output.count("| offset: ") == 40
    assert "offset: 4 position: " in output
    assert "timestamp: 1700000000004 offset: 4" in output


def test_coordinators_and_metadata_are_read(stopped: Stopped) -> None:
    offsets = dump(stopped.data.glob("__consumer_offsets-*/*.log"), "--offsets-decoder")
    assert f'"group":"{GROUP}","topic":"orders","partition":1' in offsets
    files = stopped.data.glob("__transaction_state-*/*.log")
    transactions = dump(files, "--transaction-log-decoder")
    assert '"transactionalId":"t"' in transactions
    metadata = dump(stopped.data.glob("__cluster_metadata-0/*.log"), "--cluster-metadata-decoder")
    assert "LeaderChange" in metadata
    assert '"name":"orders"' in metadata


def append(log: Path, key: bytes | None, value: bytes) -> None:
    """Appends one record."""
    last = list(iterate_headers(log.read_bytes()))[-1][1]
    batch = build_batch([Record(timestamp=last.max_timestamp, key=key, value=value)])
    assign(batch, 0, last.next_offset, last.partition_leader_epoch)
    with log.open("ab") as file:
        file.write(batch)


def test_a_broker_serves_the_files_of_a_node(stopped: Stopped, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped.data, data)
    append(data / "__cluster_metadata-0" / f"{0:020}.log", None, METADATA_VERSION)
    absent = AbsenceValue(members=(AbsentMember(member_id="m", left_ms=5),))
    key, value = GroupRecordCodec().encode(GroupRecord(AbsenceKey(group_id=GROUP), absent))
    log = next(file for file in data.glob("__consumer_offsets-*/*.log") if file.stat().st_size)
    assert value is not None
    append(log, key, value)
    clients = ReservedPort()
    properties = tmp_path / "server.properties"
    properties.write_text(PROPERTIES.format(port=stopped.port, clients=clients, data=data))
    flags = ["-Xmx512m", f"-Dlog4j2.configurationFile={LIBRARIES / 'log4j2.yaml'}"]
    command = ["java", *flags, "-cp", f"{LIBRARIES}/libs/*", "kafka.Kafka", str(properties)]
    process = spawn(command, tmp_path / "kafka.log")
    try:
        bootstrap = f"{HOST}:{clients}"
        assert contents(bootstrap) == stopped.contents
        assert committed(bootstrap) == stopped.committed
    finally:
        stop(process)
        print((tmp_path / "kafka.log").read_text()[-4_000:])
