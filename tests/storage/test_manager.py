import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import read_header
from ottla.records.builder import Record, build_batch
from ottla.storage.checkpoints import read_clean_shutdown, read_offsets
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem

from .batches import NOW_MS, append, read_all, read_slice, values_of
from .brokers import CONFIG, ORDERS, OTHER_ID, TOPIC_ID, Broker


def test_logs_are_there_again_after_a_restart() -> None:
    broker = Broker()
    append(broker.create(), b"a")
    broker.restart()
    log = broker.log()
    assert log.topic_id == TOPIC_ID
    assert log.flushed_offset == 1
    assert values_of(read_all(log)) == [b"a"]


def test_a_clean_shutdown_is_marked_until_the_next_start() -> None:
    broker = Broker()
    broker.logs.stop()
    assert read_clean_shutdown(broker.filesystem, "/data") is not None
    broker.start()
    assert read_clean_shutdown(broker.filesystem, "/data") is None


def test_a_partition_that_was_never_flushed_can_be_made_again_after_a_crash() -> None:
    for seed in range(30):
        broker = Broker(filesystem=FaultyFilesystem(seed))
        append(broker.create(), b"a")
        broker.crash()
        log = broker.logs.get(ORDERS) or broker.create()
        assert log.topic_id == TOPIC_ID
        assert values_of(read_all(log)) in ([], [b"a"])


def test_high_watermark_and_log_start_are_kept() -> None:
    broker = Broker()
    log = broker.create()
    for _ in range(10):
        append(log)
    log.high_watermark = 7
    log.delete_records_before(1)
    broker.restart()
    log = broker.log()
    assert log.log_start_offset == 1
    assert log.high_watermark == 7


def test_a_checkpoint_says_what_is_flushed() -> None:
    broker = Broker()
    log = broker.create()
    append(log)
    log.flush()
    append(log)
    broker.logs.checkpoint()
    path = "/data/recovery-point-offset-checkpoint"
    assert read_offsets(broker.filesystem, path) == {ORDERS: 1}


def test_a_truncation_lowers_the_recovery_point_first() -> None:
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


def test_starting_anew_lowers_the_recovery_point_first() -> None:
    broker = Broker()
    log = broker.create()
    for _ in range(5):
        append(log)
    log.flush()
    broker.logs.start_anew({ORDERS: 3})
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (3, 3, 3)
    path = "/data/recovery-point-offset-checkpoint"
    assert read_offsets(broker.filesystem, path) == {ORDERS: 3}


def test_a_deleted_log_is_not_truncated() -> None:
    broker = Broker()
    broker.create()
    other = broker.create(TopicPartition("orders", 1))
    append(other)
    broker.logs.delete(ORDERS)
    broker.logs.truncate({ORDERS: 0, TopicPartition("orders", 1): 0})
    assert other.log_end_offset == 0


def test_a_deleted_partition_goes_after_the_delay() -> None:
    broker = Broker()
    log = broker.create()
    append(log, b"a")
    part = read_slice(log, 0, 1000, 1)
    broker.logs.delete(ORDERS)
    assert broker.logs.get(ORDERS) is None
    assert values_of(part.read()) == [b"a"]
    broker.logs.removals.remove_due()
    assert any(name.endswith("-delete") for name in broker.filesystem.list("/data"))
    broker.now_ms += 1000
    broker.logs.removals.remove_due()
    assert not any(name.startswith("orders") for name in broker.filesystem.list("/data"))


def test_a_deleted_partition_refuses_appends() -> None:
    broker = Broker()
    log = broker.create()
    append(log)
    broker.logs.delete(ORDERS)
    with pytest.raises(ApiError) as refusal:
        append(log)
    assert refusal.value.code is ErrorCode.unknown_topic_or_partition
    log.flush()
    assert broker.failures == []


def test_a_start_removes_what_was_deleted_before() -> None:
    broker = Broker()
    broker.create()
    broker.logs.delete(ORDERS)
    broker.restart()
    broker.logs.removals.remove_due()
    assert not any(name.startswith("orders") for name in broker.filesystem.list("/data"))


def test_a_topic_made_anew_does_not_see_the_records_of_the_old_one() -> None:
    broker = Broker()
    append(broker.create(topic_id=TOPIC_ID), b"old")
    assert broker.logs.get(ORDERS, OTHER_ID) is None
    log = broker.create(topic_id=OTHER_ID)
    assert log.log_end_offset == 0
    broker.restart()
    assert broker.log().topic_id == OTHER_ID


def test_the_log_of_the_metadata_is_not_a_partition_here() -> None:
    broker = Broker()
    broker.filesystem.make_directory("/data/__cluster_metadata-0")
    broker.filesystem.make_directory("/data/lost+found")
    broker.restart()
    assert list(broker.logs.logs()) == []


def test_retention_removes_old_segments() -> None:
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


def test_silent_producers_are_forgotten_without_retention() -> None:
    broker = Broker()
    log = broker.create()
    append(log, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    assert [entry.producer_id for entry in log.producers] == [7]
    broker.now_ms += log.producers.expiration_ms + 1
    broker.logs.retain()
    assert [entry.producer_id for entry in log.producers] == [7]
    broker.logs.expire_producers()
    assert list(log.producers) == []


def test_compaction_keeps_the_last_record_of_each_key() -> None:
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
    assert values_of(read_all(broker.log())) == values
