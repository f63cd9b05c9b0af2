import errno
from uuid import UUID

import pytest

from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import read_header
from ottla.records.builder import Record, build_batch
from ottla.storage.checkpoints import read_clean_shutdown, read_offsets
from ottla.storage.config import LogConfig
from ottla.storage.directory_identity import WrongDirectory
from ottla.storage.errors import CorruptLog, StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.local_filesystem import LocalFilesystem
from ottla.storage.log_directory import LogDirectory
from ottla.storage.manager import LogManager
from ottla.storage.reading import index_of

from .batches import NOW_MS, append, read_all, values_of

TOPIC_ID = UUID(int=7)
OTHER_ID = UUID(int=8)
ORDERS = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=300, file_delete_delay_ms=1000)


class Broker:
    """A log manager over a disk, which can be stopped, crashed and started again."""

    def __init__(self, *directories, filesystem=None, node_id=1):
        self.filesystem = filesystem or FaultyFilesystem()
        self.directories = directories or ("/data",)
        self.node_id = node_id
        self.now_ms = NOW_MS
        self.failures = []
        self.start()

    def start(self, cluster_id=None):
        self.logs = LogManager(
            self.directories,
            self.filesystem,
            lambda: self.now_ms,
            broker=ConfigValues({"num.recovery.threads.per.data.dir": 1}),
            config_of_topic=lambda _: CONFIG,
            on_failure=self.failures.append,
        )
        self.logs.start(self.node_id, cluster_id)

    def restart(self):
        self.logs.stop()
        self.start()

    def crash(self):
        self.filesystem.crash()
        self.start()

    def create(self, topic_partition=ORDERS, topic_id=TOPIC_ID):
        return self.logs.create(topic_partition, topic_id, CONFIG)


def test_logs_are_there_again_after_a_restart():
    broker = Broker()
    append(broker.create(), b"a")
    broker.restart()
    log = broker.logs.get(ORDERS)
    assert log.topic_id == TOPIC_ID
    assert log.flushed_offset == 1
    assert values_of(read_all(log)) == [b"a"]


def test_a_clean_shutdown_is_marked_until_the_next_start():
    broker = Broker()
    broker.logs.stop()
    assert read_clean_shutdown(broker.filesystem, "/data") is not None
    broker.start()
    assert read_clean_shutdown(broker.filesystem, "/data") is None


@pytest.mark.parametrize(
    ("ending", "end_offset", "damaged"), [("kill", 10, [(4, 5)]), ("crash", 4, [])]
)
def test_only_a_machine_that_stopped_can_have_lost_what_is_before_the_last_write(
    ending, end_offset, damaged
):
    broker = Broker()
    log = broker.create()
    for index in range(10):
        append(log, b"%d" % index * 20)
    log.flush()
    segment = log.segments[index_of(log.segments, 4)]
    position = segment.find_offset(4).position + 70
    getattr(broker.filesystem, ending)()
    broker.filesystem.flip_bit(segment.path, position)
    broker.start()
    log = broker.logs.get(ORDERS)
    assert [damage[3:5] for damage in log.damage] == damaged
    assert log.log_end_offset == end_offset


def test_what_was_flushed_survives_a_crash():
    for seed in range(30):
        broker = Broker(filesystem=FaultyFilesystem(seed))
        log = broker.create()
        for index in range(10):
            append(log, b"%d" % index * 20)
        log.flush()
        append(log, b"x")
        broker.crash()
        log = broker.logs.get(ORDERS)
        expected = [b"%d" % index * 20 for index in range(10)] + [b"x"]
        assert log.log_end_offset >= 10
        assert values_of(read_all(log)) == expected[: log.log_end_offset]


def test_what_was_flushed_survives_though_the_process_that_made_the_partition_was_killed():
    for seed in range(10):
        broker = Broker(filesystem=FaultyFilesystem(seed))
        broker.create()
        broker.filesystem.kill()
        broker.start()
        log = broker.logs.get(ORDERS) or broker.create()
        append(log, b"a")
        log.flush()
        broker.crash()
        assert values_of(read_all(broker.logs.get(ORDERS) or broker.create())) == [b"a"]


def test_a_partition_that_was_never_flushed_can_be_made_again_after_a_crash():
    for seed in range(30):
        broker = Broker(filesystem=FaultyFilesystem(seed))
        append(broker.create(), b"a")
        broker.crash()
        log = broker.logs.get(ORDERS) or broker.create()
        assert log.topic_id == TOPIC_ID
        assert values_of(read_all(log)) in ([], [b"a"])


def test_high_watermark_and_log_start_are_kept():
    broker = Broker()
    log = broker.create()
    for _ in range(10):
        append(log)
    log.high_watermark = 7
    log.delete_records_before(1)
    broker.restart()
    log = broker.logs.get(ORDERS)
    assert log.log_start_offset == 1
    assert log.high_watermark == 7


def test_a_checkpoint_says_what_is_flushed():
    broker = Broker()
    log = broker.create()
    append(log)
    log.flush()
    append(log)
    broker.logs.checkpoint()
    path = "/data/recovery-point-offset-checkpoint"
    assert read_offsets(broker.filesystem, path) == {ORDERS: 1}


def test_a_truncation_lowers_the_recovery_point_first():
    broker = Broker()
    log = broker.create()
    for _ in range(5):
        append(log)
    log.flush()
    broker.logs.checkpoint()
    broker.logs.truncate({ORDERS: 2})
    assert log.log_end_offset == 2
    path = "/data/recovery-point-offset-checkpoint"
    assert read_offsets(broker.filesystem, path) == {ORDERS: 2}


def test_a_truncation_inside_a_batch_lowers_the_recovery_point_to_where_the_log_ends():
    for seed in range(20):
        broker = Broker(filesystem=FaultyFilesystem(seed))
        log = broker.create()
        append(log, b"a")
        append(log, b"b", b"c", b"d")
        log.flush()
        broker.logs.checkpoint()
        broker.logs.truncate({ORDERS: 3})
        path = "/data/recovery-point-offset-checkpoint"
        assert read_offsets(broker.filesystem, path) == {ORDERS: 1} == {ORDERS: log.log_end_offset}
        log.flush()
        append(log, b"e" * 50, b"f", b"g")
        broker.crash()
        assert not broker.logs.get(ORDERS).damage


def test_starting_anew_lowers_the_recovery_point_first():
    broker = Broker()
    log = broker.create()
    for _ in range(5):
        append(log)
    log.flush()
    broker.logs.start_anew({ORDERS: 3})
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (3, 3, 3)
    path = "/data/recovery-point-offset-checkpoint"
    assert read_offsets(broker.filesystem, path) == {ORDERS: 3}


def test_a_deleted_log_is_not_truncated():
    broker = Broker()
    broker.create()
    other = broker.create(TopicPartition("orders", 1))
    append(other)
    broker.logs.delete(ORDERS)
    broker.logs.truncate({ORDERS: 0, TopicPartition("orders", 1): 0})
    assert other.log_end_offset == 0


def test_a_cordoned_directory_gets_nothing_new_while_there_is_another():
    broker = Broker("/a", "/b")
    broker.create(TopicPartition("orders", 0))
    broker.logs.cordon(lambda path: path == "/a")
    for index in range(1, 4):
        broker.create(TopicPartition("orders", index))
    infos = broker.logs.directories()
    assert [(info.cordoned, len(info.logs)) for info in infos] == [(True, 1), (False, 3)]
    broker.logs.cordon(lambda _: True)
    broker.create(TopicPartition("orders", 4))  # The controller decided so before it knew.
    assert sum(len(info.logs) for info in broker.logs.directories()) == 5


def test_partitions_are_spread_over_the_directories():
    broker = Broker("/a", "/b")
    for index in range(6):
        broker.create(TopicPartition("orders", index))
    assert [len(info.logs) for info in broker.logs.directories()] == [3, 3]
    broker.restart()
    assert [len(info.logs) for info in broker.logs.directories()] == [3, 3]


def test_a_deleted_partition_goes_after_the_delay():
    broker = Broker()
    log = broker.create()
    append(log, b"a")
    part = log.read(0, 1000, 1)
    broker.logs.delete(ORDERS)
    assert broker.logs.get(ORDERS) is None
    assert values_of(part.read()) == [b"a"]
    broker.logs.remove_discarded()
    assert any(name.endswith("-delete") for name in broker.filesystem.list("/data"))
    broker.now_ms += 1000
    broker.logs.remove_discarded()
    assert not any(name.startswith("orders") for name in broker.filesystem.list("/data"))


def test_a_deleted_partition_refuses_appends():
    broker = Broker()
    log = broker.create()
    append(log)
    broker.logs.delete(ORDERS)
    with pytest.raises(ApiError) as refusal:
        append(log)
    assert refusal.value.code is ErrorCode.unknown_topic_or_partition
    log.flush()
    assert broker.failures == []


def test_a_start_removes_what_was_deleted_before():
    broker = Broker()
    broker.create()
    broker.logs.delete(ORDERS)
    broker.restart()
    broker.logs.remove_discarded()
    assert not any(name.startswith("orders") for name in broker.filesystem.list("/data"))


def test_a_topic_made_anew_does_not_see_the_records_of_the_old_one():
    broker = Broker()
    append(broker.create(topic_id=TOPIC_ID), b"old")
    assert broker.logs.get(ORDERS, OTHER_ID) is None
    log = broker.create(topic_id=OTHER_ID)
    assert log.log_end_offset == 0
    broker.restart()
    assert broker.logs.get(ORDERS).topic_id == OTHER_ID


def test_a_log_of_another_topic_of_the_name_is_set_aside_and_never_removed(caplog):
    broker = Broker()
    append(broker.create(topic_id=TOPIC_ID), b"old")
    broker.logs.flush()
    broker.create(topic_id=OTHER_ID)
    for _ in range(2):
        broker.restart()
        broker.now_ms += 10**9
        broker.logs.remove_discarded()
    [stray] = [name for name in broker.filesystem.list("/data") if name.endswith("-stray")]
    assert stray.startswith("orders-0.")
    assert b"old" in broker.filesystem.read_bytes(f"/data/{stray}/{0:020d}.log")
    assert "is set aside as" in caplog.text
    assert (
        f"/data: 1 set aside under a name that ends in -stray, to be removed by hand: {stray}"
        in (caplog.text)
    )


def _move_away(filesystem):
    filesystem.rename("/data", "/moved")
    filesystem.make_directory("/data")


def _replace(filesystem):
    _move_away(filesystem)
    filesystem.lock("/data/.lock.new")
    filesystem.rename("/data/.lock.new", "/data/.lock")
    filesystem.write_atomically("/data/meta.properties", b"another's")


@pytest.mark.parametrize(
    "lose",
    [
        lambda filesystem: filesystem.remove_tree("/data"),
        lambda filesystem: filesystem.remove("/data/meta.properties"),  # As `rm -r data/*` does.
        _move_away,
        _replace,
    ],
)
def test_a_directory_that_is_lost_while_it_is_in_use_goes_offline(lose):
    """Its files are open, and writes and syncs go on as if nothing was."""
    broker = Broker()
    log = broker.create()
    append(log, b"kept")
    assert log.flush() == 1
    lose(broker.filesystem)
    append(log, b"lost")
    with pytest.raises(StorageError, match="removed or replaced while the node uses it: '/data'"):
        log.flush()
    assert len(broker.failures) == 1
    assert broker.logs.is_offline


def test_a_lost_directory_is_missed_though_nobody_writes():
    broker = Broker()
    broker.create()
    broker.logs.check_directories()
    assert broker.failures == []
    broker.filesystem.remove_tree("/data")
    broker.logs.check_directories()
    assert len(broker.failures) == 1


def test_a_failed_directory_goes_offline_and_the_other_goes_on():
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
    offline, online = (broker.logs.directory_ids[path] for path in ("/a", "/b"))
    assert broker.logs.offline_directory_ids == [offline]
    with pytest.raises(StorageError, match="/a"):
        broker.create(TopicPartition("orders", 0))
    assert broker.logs.is_out_of_reach(offline)
    assert not broker.logs.is_out_of_reach(online)
    assert not broker.logs.is_out_of_reach(None)
    broker.logs.retain()
    broker.logs.checkpoint()
    assert broker.create(TopicPartition("orders", 2)).home.path == "/b"
    broker.logs.stop()
    assert read_clean_shutdown(broker.filesystem, "/a") is None
    assert read_clean_shutdown(broker.filesystem, "/b") is not None


@pytest.mark.parametrize("failing", ["identity", "batches"])
def test_what_a_failed_sync_left_in_the_cache_is_on_the_disk_after_the_next_flush(failing):
    for seed in range(10):
        broker = Broker(filesystem=FaultyFilesystem(seed))
        log = broker.create()
        if failing == "batches":
            log.flush()
        append(log, b"a")
        broker.filesystem.fail_next_sync()
        with pytest.raises(StorageError):
            log.flush()
        broker.logs.stop()
        broker.start()
        append(broker.logs.get(ORDERS), b"b")
        broker.logs.flush()
        broker.crash()
        log = broker.logs.get(ORDERS)
        assert log.topic_id == TOPIC_ID
        assert values_of(read_all(log)) == [b"a", b"b"]


def test_a_corrupt_partition_is_not_served_but_the_others_are(nothing_is_passed_over):
    broker = Broker()
    log = broker.create()
    for _ in range(2):
        append(log, b"x" * 40)
    append(broker.create(TopicPartition("orders", 1)), b"fine")
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 100)
    broker.crash()
    assert broker.logs.get(ORDERS) is None
    with pytest.raises(ApiError, match="corrupt at position") as refusal:
        broker.create()
    assert refusal.value.code is ErrorCode.kafka_storage_error
    assert values_of(read_all(broker.logs.get(TopicPartition("orders", 1)))) == [b"fine"]
    assert list(broker.logs.corrupt) == [ORDERS]
    broker.logs.set_corrupt_aside(ORDERS)
    assert append(broker.create(), b"again").first_offset == 0
    broker.restart()
    assert values_of(read_all(broker.logs.get(ORDERS))) == [b"again"]


def test_a_corrupt_partition_can_be_deleted_and_made_anew(nothing_is_passed_over):
    broker = Broker()
    log = broker.create()
    append(log, b"x" * 40)
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 100)
    broker.crash()
    broker.logs.delete(ORDERS)
    assert broker.create().log_end_offset == 0
    broker.logs.remove_discarded()
    assert [n for n in broker.filesystem.list("/data") if n.endswith("-delete")] == []


def test_a_corrupt_log_of_another_topic_is_set_aside_when_its_name_is_made_anew(
    nothing_is_passed_over,
):
    broker = Broker()
    log = broker.create()
    append(log, b"x" * 40)
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 100)
    broker.crash()
    assert broker.create(topic_id=OTHER_ID).log_end_offset == 0
    broker.logs.delete(ORDERS)
    broker.now_ms += CONFIG.file_delete_delay_ms + 1
    broker.logs.remove_discarded()
    (stray,) = [name for name in broker.filesystem.list("/data") if name.endswith("-stray")]
    assert broker.filesystem.exists(f"/data/{stray}/00000000000000000000.log")


def test_a_corrupt_log_of_nobody_knows_whom_is_not_deleted(nothing_is_passed_over):
    broker = Broker()
    log = broker.create()
    append(log, b"x" * 40)
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 100)
    broker.filesystem.flip_bit("/data/orders-0/partition.metadata", 24)
    broker.crash()
    broker.logs.delete(ORDERS)
    broker.logs.remove_discarded()
    assert [name for name in broker.filesystem.list("/data") if name.endswith("-stray")]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOSPC])
def test_what_is_short_for_a_while_does_not_take_the_directory_offline(number):
    home = LogDirectory("/data", FaultyFilesystem())
    refusal = home.fail(OSError(number, "short"))
    assert isinstance(refusal, ApiError)
    assert refusal.code is ErrorCode.kafka_storage_error
    assert home.failure is None


def test_a_directory_in_use_is_refused(tmp_path):
    broker = Broker(str(tmp_path), filesystem=LocalFilesystem())
    other = LogManager([str(tmp_path)], LocalFilesystem(), lambda: NOW_MS)
    with pytest.raises(WrongDirectory, match="in use by another process"):
        other.start(1)
    broker.logs.stop()
    other.start(1)
    other.stop()


def test_the_directory_of_another_node_is_refused():
    broker = Broker()
    broker.logs.stop()
    broker.node_id = 2
    with pytest.raises(WrongDirectory, match="belongs to node 1, not to node 2"):
        broker.start()


def test_the_directory_of_another_cluster_is_refused():
    broker = Broker()
    broker.logs.stop()
    with pytest.raises(WrongDirectory, match="belongs to cluster"):
        broker.start("another")


def test_the_cluster_id_is_found_again():
    broker = Broker()
    cluster_id = broker.logs.cluster_id
    broker.restart()
    assert broker.logs.cluster_id == cluster_id != ""


def test_the_log_of_the_metadata_is_not_a_partition_here():
    broker = Broker()
    broker.filesystem.make_directory("/data/__cluster_metadata-0")
    broker.filesystem.make_directory("/data/lost+found")
    broker.restart()
    assert list(broker.logs.logs()) == []


def test_retention_removes_old_segments():
    broker = Broker()
    log = broker.create()
    for _ in range(10):
        append(log, b"x" * 50)
    log.high_watermark = 10
    broker.now_ms += CONFIG.retention_ms + 1
    broker.logs.retain()
    assert log.log_start_offset == log.log_end_offset == 10
    [left] = [name for name in broker.filesystem.list(log.directory) if name.endswith(".log")]
    assert broker.filesystem.size(f"{log.directory}/{left}") == 0
    assert append(log, now_ms=broker.now_ms, timestamp=broker.now_ms).first_offset == 10


def test_a_full_disk_stops_no_directory():
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


def test_compaction_keeps_the_last_record_of_each_key():
    broker = Broker()
    config = LogConfig(segment_bytes=300, cleanup_policy=("compact",))
    log = broker.logs.create(ORDERS, TOPIC_ID, config)
    for index in range(20):
        batch = build_batch(
            [Record(timestamp=NOW_MS, key=b"k%d" % (index % 2), value=b"%d" % index)]
        )
        log.append_as_leader(memoryview(batch), read_header(batch), 0, NOW_MS)
    log.high_watermark = log.flush()
    assert broker.logs.clean()
    assert not broker.logs.clean()
    values = values_of(read_all(log))
    assert len(values) < 10
    assert values[-2:] == [b"18", b"19"]
    broker.restart()
    assert values_of(read_all(broker.logs.get(ORDERS))) == values


def test_a_clean_stop_hands_the_broker_epoch_on():
    broker = Broker("/a", "/b")
    assert broker.logs.previous_broker_epoch == -1
    broker.logs.broker_epoch = 7
    broker.restart()
    assert broker.logs.previous_broker_epoch == 7
    broker.crash()
    assert broker.logs.previous_broker_epoch == -1


def test_an_epoch_that_was_written_survives_a_crash():
    broker = Broker()
    broker.logs.broker_epoch = 7
    broker.logs.write_broker_epoch()
    broker.crash()
    assert broker.logs.previous_broker_epoch == 7


def test_a_directory_that_does_not_know_the_epoch_leaves_it_open():
    broker = Broker("/a")
    broker.logs.broker_epoch = 7
    broker.logs.stop()
    broker.directories = ("/a", "/b")
    broker.start()
    assert broker.logs.previous_broker_epoch == -1


def test_a_directory_that_fails_leaves_the_epoch_open():
    broker = Broker("/a", "/b")
    broker.logs.broker_epoch = 7
    broker.restart()
    broker.create()
    broker.filesystem.fail_next_sync()
    append(broker.logs.get(ORDERS))
    with pytest.raises(StorageError):
        broker.logs.get(ORDERS).flush()
    assert broker.logs.previous_broker_epoch == -1
    assert not broker.logs.is_offline


def test_a_corrupt_partition_leaves_the_epoch_open(nothing_is_passed_over):
    broker = Broker()
    log = broker.create()
    append(log, b"x" * 40)
    broker.logs.broker_epoch = 7
    broker.logs.write_broker_epoch()
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 100)
    broker.crash()
    assert broker.logs.previous_broker_epoch == -1


def test_a_partition_is_served_around_its_damage():
    broker = Broker()
    log = broker.create()
    for value in (b"a", b"b", b"c"):
        append(log, value * 40)
    log.high_watermark = 3
    broker.logs.broker_epoch = 7
    broker.logs.write_broker_epoch()
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 160)
    broker.crash()
    log = broker.create()
    log.high_watermark = 3
    with pytest.raises(CorruptLog):
        log.read(1, 1, 3)
    broker.logs.scrub()
    assert broker.logs.damaged == [log]
    assert [(one.first_offset, one.next_offset) for one in log.damage] == [(1, 2)]
    assert values_of(read_all(log, 2)) == [b"c" * 40]
    assert append(log, b"d").first_offset == 3
    assert broker.logs.previous_broker_epoch == 7, "it has all but what is damaged"
    broker.restart()
    assert broker.logs.get(ORDERS).log_end_offset == 4


def test_what_was_cut_off_in_front_of_intact_batches_leaves_the_epoch_open():
    """Others may count on it: the recovery point is behind what was synced."""
    broker = Broker()
    log = broker.create()
    for value in (b"a", b"b", b"c"):
        append(log, value * 40)
    broker.logs.broker_epoch = 7
    broker.logs.write_broker_epoch()
    broker.logs.flush()
    broker.filesystem.flip_bit(log.segments[0].path, 160)
    broker.crash()
    assert broker.logs.get(ORDERS).log_end_offset == 1
    assert broker.logs.previous_broker_epoch == -1


def test_a_segment_is_scrubbed_and_its_damage_told():
    broker = Broker()
    log = broker.create()
    append(log, b"a" * 40)
    log.roll()
    append(log, b"b" * 40)
    broker.logs.flush()
    broker.logs.scrub()
    assert broker.logs.damaged == []
    broker.filesystem.flip_bit(log.segments[0].path, 80)
    broker.now_ms += 2 * 86_400_000
    broker.logs.scrub()
    assert broker.logs.damaged == [log]
