"""Directories that are lost, full, in use or another node's, and their broker's epoch."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.storage.checkpoints import read_clean_shutdown
from ottla.storage.directory_identity import WrongDirectory
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.local_filesystem import LocalFilesystem
from ottla.storage.log_directory import LogDirectory
from ottla.storage.manager import LogManager

from .batches import NOW_MS, append
from .brokers import ORDERS, Broker


def test_a_cordoned_directory_gets_nothing_new_while_there_is_another() -> None:
    broker = Broker("/a", "/b")
    broker.create(TopicPartition("orders", 0))
    broker.logs.log_dirs.cordon(lambda path: path == "/a")
    for index in range(1, 4):
        broker.create(TopicPartition("orders", index))
    infos = broker.logs.directories()
    assert [(info.cordoned, len(info.logs)) for info in infos] == [(True, 1), (False, 3)]
    broker.logs.log_dirs.cordon(lambda _: True)
    broker.create(TopicPartition("orders", 4))  # The controller decided this before it knew.
    assert sum(len(info.logs) for info in broker.logs.directories()) == 5


def test_partitions_are_spread_over_the_directories() -> None:
    broker = Broker("/a", "/b")
    for index in range(6):
        broker.create(TopicPartition("orders", index))
    assert [len(info.logs) for info in broker.logs.directories()] == [3, 3]
    broker.restart()
    assert [len(info.logs) for info in broker.logs.directories()] == [3, 3]


def _move_away(filesystem: FaultyFilesystem) -> None:
    filesystem.rename("/data", "/moved")
    filesystem.make_directory("/data")


def _replace(filesystem: FaultyFilesystem) -> None:
    _move_away(filesystem)
    filesystem.lock("/data/.lock.new")
    filesystem.rename("/data/.lock.new", "/data/.lock")
    filesystem.write_atomically("/data/meta.properties", b"another's")


@pytest.mark.parametrize(
    "lose",
    [
        lambda filesystem: filesystem.remove_tree("/data"),
        lambda filesystem: filesystem.remove("/data/meta.properties"),  # Like `rm -r data/*`.
        _move_away,
        _replace,
    ],
)
def test_a_directory_that_is_lost_while_it_is_in_use_goes_offline(
    lose: Callable[[FaultyFilesystem], None],
) -> None:
    """Its files are open, and writes and syncs still succeed."""
    broker = Broker()
    log = broker.create()
    append(log, b"kept")
    assert log.flush() == 1
    lose(broker.filesystem)
    append(log, b"lost")
    with pytest.raises(StorageError, match="removed or replaced while the node uses it: '/data'"):
        log.flush()
    assert len(broker.failures) == 1
    assert broker.logs.log_dirs.is_offline


def test_a_lost_directory_is_missed_though_nobody_writes() -> None:
    broker = Broker()
    broker.create()
    broker.logs.log_dirs.check()
    assert broker.failures == []
    broker.filesystem.remove_tree("/data")
    broker.logs.log_dirs.check()
    assert len(broker.failures) == 1


def test_a_failed_directory_goes_offline_and_the_other_goes_on() -> None:
    broker = Broker("/a", "/b")
    first = broker.create(TopicPartition("orders", 0))
    second = broker.create(TopicPartition("orders", 1))
    append(first)
    append(second)
    broker.filesystem.fail_next_sync()
    with pytest.raises(StorageError, match="/a"):
        first.flush()
    assert [failure.directory for failure in broker.failures] == ["/a"]
    with pytest.raises(StorageError):
        append(first)
    with pytest.raises(StorageError):
        first.flush()
    assert second.flush() == 1
    assert [info.online for info in broker.logs.directories()] == [False, True]
    assert list(broker.logs.logs()) == [second]
    offline, online = (broker.logs.log_dirs.ids[path] for path in ("/a", "/b"))
    assert broker.logs.log_dirs.offline_ids == [offline]
    with pytest.raises(StorageError, match="/a"):
        broker.create(TopicPartition("orders", 0))
    assert broker.logs.log_dirs.is_out_of_reach(offline)
    assert not broker.logs.log_dirs.is_out_of_reach(online)
    assert not broker.logs.log_dirs.is_out_of_reach(None)
    broker.logs.retain()
    broker.logs.checkpoint()
    assert broker.create(TopicPartition("orders", 2)).log_directory.path == "/b"
    broker.logs.stop()
    assert read_clean_shutdown(broker.filesystem, "/a") is None
    assert read_clean_shutdown(broker.filesystem, "/b") is not None


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOSPC])
def test_what_is_short_for_a_while_does_not_take_the_directory_offline(number: int) -> None:
    log_directory = LogDirectory("/data", FaultyFilesystem())
    refusal = log_directory.on_error(OSError(number, "short"))
    assert isinstance(refusal, ApiError)
    assert refusal.code is ErrorCode.kafka_storage_error
    assert log_directory.failure is None


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    holder = LogManager([str(tmp_path)], LocalFilesystem(), lambda: NOW_MS)
    holder.start(1)
    other = LogManager([str(tmp_path)], LocalFilesystem(), lambda: NOW_MS)
    with pytest.raises(WrongDirectory, match="in use by another process"):
        other.start(1)
    holder.stop()
    other.start(1)
    other.stop()


def test_the_directory_of_another_node_is_refused() -> None:
    broker = Broker()
    broker.logs.stop()
    broker.node_id = 2
    with pytest.raises(WrongDirectory, match="belongs to node 1, not to node 2"):
        broker.start()


def test_the_directory_of_another_cluster_is_refused() -> None:
    broker = Broker()
    broker.logs.stop()
    with pytest.raises(WrongDirectory, match="belongs to cluster"):
        broker.start("another")


def test_the_cluster_id_is_found_again() -> None:
    broker = Broker()
    cluster_id = broker.logs.log_dirs.cluster_id
    broker.restart()
    assert broker.logs.log_dirs.cluster_id == cluster_id != ""


def test_a_full_disk_stops_no_directory() -> None:
    broker = Broker()
    log = broker.create()
    append(log)
    log.flush()
    broker.filesystem.disk_full()
    broker.logs.checkpoint()
    broker.logs.retain()
    assert broker.failures == []
    broker.filesystem.disk_full(None)
    assert append(log).first_offset == 1
    broker.logs.stop()
    assert read_clean_shutdown(broker.filesystem, "/data") is not None


def test_a_clean_stop_hands_the_broker_epoch_on() -> None:
    broker = Broker("/a", "/b")
    assert broker.logs.log_dirs.previous_broker_epoch == -1
    broker.logs.log_dirs.broker_epoch = 7
    broker.restart()
    assert broker.logs.log_dirs.previous_broker_epoch == 7
    broker.crash()
    assert broker.logs.log_dirs.previous_broker_epoch == -1


def test_an_epoch_that_was_written_survives_a_crash() -> None:
    broker = Broker()
    broker.logs.log_dirs.broker_epoch = 7
    broker.logs.log_dirs.write_broker_epoch()
    broker.crash()
    assert broker.logs.log_dirs.previous_broker_epoch == 7


def test_a_directory_that_does_not_know_the_epoch_leaves_it_open() -> None:
    broker = Broker("/a")
    broker.logs.log_dirs.broker_epoch = 7
    broker.logs.stop()
    broker.directories = ("/a", "/b")
    broker.start()
    assert broker.logs.log_dirs.previous_broker_epoch == -1


def test_a_directory_that_fails_leaves_the_epoch_open() -> None:
    broker = Broker("/a", "/b")
    broker.logs.log_dirs.broker_epoch = 7
    broker.restart()
    broker.create()
    broker.filesystem.fail_next_sync()
    append(broker.log())
    with pytest.raises(StorageError):
        broker.log().flush()
    assert broker.logs.log_dirs.previous_broker_epoch == -1
    assert not broker.logs.log_dirs.is_offline


def test_a_full_disk_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    append(broker.create(ORDERS), b"one", timestamp=NOW_MS)
    broker.filesystem.disk_full(0)
    for _ in range(3):
        (log_directory,) = broker.logs.log_dirs
        broker.logs.log_dirs.attempt(
            log_directory,
            lambda _: broker.filesystem.write_atomically("/data/checkpoint", b"new"),
        )
    assert caplog.text.count("is full") == 1
