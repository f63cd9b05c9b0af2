import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.runtime.machines import TextCodec, Words

from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.runtime import local_commit_log
from ottla.runtime.clock import SystemClock
from ottla.runtime.local_commit_log import LocalCommitLog
from ottla.runtime.machine_runtime import MachineRuntime
from ottla.runtime.snapshots import SnapshotStore
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog

DIRECTORY = "/data/__cluster_metadata-0"


class Node:
    """One run of a process over a disk that survives it."""

    def __init__(self, disk, loop, executor):
        self.failures = []
        self.published = []
        self.loop = loop
        self.log = PartitionLog.open(
            DIRECTORY,
            TopicPartition("__cluster_metadata", 0),
            None,
            LogConfig(),
            disk,
            SystemClock().now_ms(),
        )
        self.commit_log = LocalCommitLog(
            self.log,
            SnapshotStore(disk, DIRECTORY),
            loop,
            executor,
            now_ms=SystemClock().now_ms,
            snapshot_bytes=1 << 20,
        )
        self.runtime = MachineRuntime(
            Words,
            TextCodec(),
            self.commit_log,
            SystemClock(),
            loop,
            on_failure=self.failures.append,
        )
        self.runtime.subscribe(lambda record, offset: self.published.append((record, offset)))

    async def add(self, *words):
        return await self.runtime.submit(lambda machine, now_ms: machine.add(*words))


class Bench:
    def __init__(self):
        self.disk = FaultyFilesystem(seed=3)
        self.disk.make_directory(DIRECTORY)
        self.loop = asyncio.new_event_loop()
        self.executor = ThreadPoolExecutor(1)

    def start(self):
        node = Node(self.disk, self.loop, self.executor)
        self.run(node.runtime.load())
        return node

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def settle(self):
        """Wait for the threads, then for what they told the loop."""
        self.executor.submit(lambda: None).result()
        for _ in range(3):
            self.run(asyncio.sleep(0))


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.executor.shutdown()
    bench.loop.close()


def test_what_was_answered_survives_a_crash(bench):
    node = bench.start()
    assert bench.run(node.add("a", "b")) == 2
    assert bench.run(node.add("c")) == 3
    bench.disk.crash()
    node = bench.start()
    assert node.runtime.machine.words == ["a", "b", "c"]
    assert node.published == [("a", 0), ("b", 1), ("c", 2)]
    assert bench.run(node.add("d")) == 4


def test_many_operations_share_a_sync(bench):
    node = bench.start()

    async def many():
        return await asyncio.gather(*(node.add(str(number)) for number in range(50)))

    assert bench.run(many()) == list(range(1, 51))
    assert node.commit_log.committed_offset == 50
    assert node.log.high_watermark == 50


def test_a_start_reads_the_snapshot_and_the_tail(bench, monkeypatch):
    monkeypatch.setattr(local_commit_log, "SNAPSHOT_RECORDS_MIN", 3)
    node = bench.start()
    bench.run(node.add("a", "b", "c"))
    bench.settle()
    assert SnapshotStore(bench.disk, DIRECTORY).newest() == (3, 1)
    assert node.log.log_start_offset == 3
    bench.run(node.add("d"))
    bench.disk.crash()
    node = bench.start()
    assert node.runtime.machine.words == ["a", "b", "c", "d"]
    assert node.published == [("a", 2), ("b", 2), ("c", 2), ("d", 3)]
    assert node.runtime.next_offset == 4


def test_a_snapshot_is_due_again_when_as_much_was_added_as_it_holds(bench, monkeypatch):
    monkeypatch.setattr(local_commit_log, "SNAPSHOT_RECORDS_MIN", 2)
    node = bench.start()
    store = SnapshotStore(bench.disk, DIRECTORY)
    offsets = []
    for number in range(12):
        bench.run(node.add(str(number)))
        bench.settle()
        offsets.append(store.newest() and store.newest().next_offset)
    assert offsets == [None, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8]


def test_a_snapshot_that_cannot_be_written_costs_nothing(bench, monkeypatch, caplog):
    monkeypatch.setattr(local_commit_log, "SNAPSHOT_RECORDS_MIN", 2)
    node = bench.start()

    write = bench.disk.write_atomically

    def full_for_snapshots(path, data):
        if path.endswith(".checkpoint"):
            raise OSError(28, "disk full")
        write(path, data)

    monkeypatch.setattr(bench.disk, "write_atomically", full_for_snapshots)
    bench.run(node.add("a", "b"))
    bench.settle()
    assert "could not write a snapshot" in caplog.text
    assert bench.run(node.add("c")) == 3
    monkeypatch.undo()
    assert bench.start().runtime.machine.words == ["a", "b", "c"]


def test_a_failed_sync_fails_the_answer_and_stops_the_node(bench):
    node = bench.start()
    bench.run(node.add("a"))
    bench.disk.fail_next_sync()

    async def refused():
        return await asyncio.gather(node.add("b"), return_exceptions=True)

    (error,) = bench.run(refused())
    assert error.code is ErrorCode.kafka_storage_error
    bench.settle()
    assert isinstance(node.failures[0], StorageError)


def test_a_log_that_does_not_reach_its_snapshot_is_refused(bench, monkeypatch):
    monkeypatch.setattr(local_commit_log, "SNAPSHOT_RECORDS_MIN", 2)
    node = bench.start()
    bench.run(node.add("a", "b"))
    bench.settle()
    for name in bench.disk.list(DIRECTORY):
        if not name.endswith(".checkpoint"):
            bench.disk.remove(f"{DIRECTORY}/{name}")
    with pytest.raises(StorageError, match="snapshot ends at offset 2"):
        bench.start()
