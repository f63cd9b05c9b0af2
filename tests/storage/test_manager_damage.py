"""Logs that are damaged, or belong to another topic."""

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.storage.checkpoints import read_offsets
from ottla.storage.errors import CorruptLog, StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.reading import index_of

from .batches import append, batch_at, read_all, values_of
from .brokers import CONFIG, ORDERS, OTHER_ID, TOPIC_ID, Broker


@pytest.mark.parametrize(
    ("ending", "end_offset", "damaged"), [("kill", 10, [(4, 5)]), ("crash", 4, [])]
)
def test_only_a_machine_that_stopped_can_have_lost_what_is_before_the_last_write(
    ending: str, end_offset: int, damaged: list[tuple[int, int]]
) -> None:
    broker = Broker()
    log = broker.create()
    for index in range(10):
        append(log, b"%d" % index * 20)
    log.flush()
    segment = log.segments[index_of(log.segments, 4)]
    position = batch_at(segment, 4).position + 70
    getattr(broker.filesystem, ending)()
    broker.filesystem.flip_bit(segment.path, position)
    broker.start()
    log = broker.log()
    assert [damage[3:5] for damage in log.damage] == damaged
    assert log.log_end_offset == end_offset


def test_what_was_flushed_survives_a_crash() -> None:
    for seed in range(30):
        broker = Broker(filesystem=FaultyFilesystem(seed))
        log = broker.create()
        for index in range(10):
            append(log, b"%d" % index * 20)
        log.flush()
        append(log, b"x")
        broker.crash()
        log = broker.log()
        expected = [b"%d" % index * 20 for index in range(10)] + [b"x"]
        assert log.log_end_offset >= 10
        assert values_of(read_all(log)) == expected[: log.log_end_offset]


def test_what_was_flushed_survives_though_the_process_that_made_the_partition_was_killed() -> None:
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


def test_a_truncation_inside_a_batch_lowers_the_recovery_point_to_where_the_log_ends() -> None:
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
        assert not broker.log().damage


def test_a_log_of_another_topic_of_the_name_is_set_aside_and_never_removed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker()
    append(broker.create(topic_id=TOPIC_ID), b"old")
    broker.logs.flush()
    broker.create(topic_id=OTHER_ID)
    for _ in range(2):
        broker.restart()
        broker.now_ms += 10**9
        broker.logs.removals.remove_due()
    [stray] = [name for name in broker.filesystem.list("/data") if name.endswith("-stray")]
    assert stray.startswith("orders-0.")
    assert b"old" in broker.filesystem.read_bytes(f"/data/{stray}/{0:020d}.log")
    assert "is set aside as" in caplog.text
    assert (
        f"/data: 1 set aside under a name that ends in -stray, to be removed by hand: {stray}"
        in (caplog.text)
    )


@pytest.mark.parametrize("failing", ["identity", "batches"])
def test_what_a_failed_sync_left_in_the_cache_is_on_the_disk_after_the_next_flush(
    failing: str,
) -> None:
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
        append(broker.log(), b"b")
        broker.logs.flush()
        broker.crash()
        log = broker.log()
        assert log.topic_id == TOPIC_ID
        assert values_of(read_all(log)) == [b"a", b"b"]


def test_a_corrupt_partition_is_not_served_but_the_others_are(nothing_is_passed_over: None) -> None:
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
    assert values_of(read_all(broker.log(TopicPartition("orders", 1)))) == [b"fine"]
    assert list(broker.logs.corrupt.all) == [ORDERS]
    broker.logs.corrupt.set_aside(ORDERS)
    assert append(broker.create(), b"again").first_offset == 0
    broker.restart()
    assert values_of(read_all(broker.log())) == [b"again"]


def test_a_corrupt_partition_can_be_deleted_and_made_anew(nothing_is_passed_over: None) -> None:
    broker = Broker()
    log = broker.create()
    append(log, b"x" * 40)
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 100)
    broker.crash()
    broker.logs.delete(ORDERS)
    assert broker.create().log_end_offset == 0
    broker.logs.removals.remove_due()
    assert [n for n in broker.filesystem.list("/data") if n.endswith("-delete")] == []


def test_a_corrupt_log_of_another_topic_is_set_aside_when_its_name_is_made_anew(
    nothing_is_passed_over: None,
) -> None:
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
    broker.logs.removals.remove_due()
    (stray,) = [name for name in broker.filesystem.list("/data") if name.endswith("-stray")]
    assert broker.filesystem.exists(f"/data/{stray}/00000000000000000000.log")


def test_a_corrupt_log_of_nobody_knows_whom_is_not_deleted(nothing_is_passed_over: None) -> None:
    broker = Broker()
    log = broker.create()
    append(log, b"x" * 40)
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 100)
    broker.filesystem.flip_bit("/data/orders-0/partition.metadata", 24)
    broker.crash()
    broker.logs.delete(ORDERS)
    broker.logs.removals.remove_due()
    assert [name for name in broker.filesystem.list("/data") if name.endswith("-stray")]


def test_a_corrupt_partition_leaves_the_epoch_open(nothing_is_passed_over: None) -> None:
    broker = Broker()
    log = broker.create()
    append(log, b"x" * 40)
    broker.logs.log_dirs.broker_epoch = 7
    broker.logs.log_dirs.write_broker_epoch()
    broker.logs.flush()
    broker.logs.checkpoint()
    broker.filesystem.flip_bit(log.segments[0].path, 100)
    broker.crash()
    assert broker.logs.log_dirs.previous_broker_epoch == -1


def test_a_partition_is_served_around_its_damage() -> None:
    broker = Broker()
    log = broker.create()
    for value in (b"a", b"b", b"c"):
        append(log, value * 40)
    log.high_watermark = 3
    broker.logs.log_dirs.broker_epoch = 7
    broker.logs.log_dirs.write_broker_epoch()
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
    assert [(damage.first_offset, damage.next_offset) for damage in log.damage] == [(1, 2)]
    assert values_of(read_all(log, 2)) == [b"c" * 40]
    assert append(log, b"d").first_offset == 3
    assert broker.logs.log_dirs.previous_broker_epoch == 7, "it has all but what is damaged"
    broker.restart()
    assert broker.log().log_end_offset == 4


def test_what_was_cut_off_in_front_of_intact_batches_leaves_the_epoch_open() -> None:
    """Others may depend on it: the recovery point is behind the synced data."""
    broker = Broker()
    log = broker.create()
    for value in (b"a", b"b", b"c"):
        append(log, value * 40)
    broker.logs.log_dirs.broker_epoch = 7
    broker.logs.log_dirs.write_broker_epoch()
    broker.logs.flush()
    broker.filesystem.flip_bit(log.segments[0].path, 160)
    broker.crash()
    assert broker.log().log_end_offset == 1
    assert broker.logs.log_dirs.previous_broker_epoch == -1


def test_a_segment_is_scrubbed_and_its_damage_told() -> None:
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
