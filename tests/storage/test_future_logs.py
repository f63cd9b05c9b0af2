"""A log moves from one directory to another; the power fails at every step of it."""

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.decoder import ControlType
from ottla.storage.checkpoints import read_offsets
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import PowerLoss
from ottla.storage.log import PartitionLog
from ottla.storage.log_move import LogMove
from ottla.storage.manager import LogManager

from .batches import NOW_MS, append, append_marker, read_all, read_slice, values_of
from .brokers import CONFIG, ORDERS, TOPIC_ID, Broker
from .test_crash_points import Life

MOVING = LogConfig(segment_bytes=330, index_interval_bytes=100, retention_bytes=900)


def begin(broker: Broker, path: str = "/b") -> LogMove:
    futures = broker.logs.futures
    log = broker.log()
    return LogMove(log, futures.create(log, futures.find_directory(path)))


def complete(broker: Broker, move: LogMove) -> PartitionLog:
    while move.advance():
        pass
    assert move.finish()
    former = broker.logs.promote(move.future)
    move.future.flush()
    broker.logs.settle(move.future.log_directory)
    broker.logs.retire(former)
    broker.logs.settle(former.log_directory)
    return move.future


def names(broker: Broker, path: str) -> list[str]:
    return [name for name in broker.filesystem.list(path) if name.startswith("orders")]


def started(broker: Broker | None = None) -> tuple[Broker, PartitionLog]:
    broker = broker or Broker("/a", "/b")
    log = broker.create()
    for number in range(12):
        append(log, b"%d" % number, leader_epoch=number // 5)
    log.flush()
    log.high_watermark = 10
    assert log.log_directory.path == "/a"
    return broker, log


def test_a_log_that_starts_within_a_batch_moves() -> None:
    broker = Broker("/a", "/b")
    log = broker.create()
    append(log, *(b"%d" % number for number in range(5)))
    append(log, b"5")
    log.high_watermark = 6
    log.delete_records_before(3)
    records = read_all(log)
    moved = complete(broker, begin(broker))
    assert (moved.log_start_offset, moved.log_end_offset) == (3, 6)
    assert read_all(moved) == records


def test_everything_is_in_the_new_directory() -> None:
    broker, log = started()
    records = read_all(log)
    append(log, b"of a producer", producer_id=5, producer_epoch=0, base_sequence=0)
    move = begin(broker)
    moved = complete(broker, move)
    assert broker.logs.get(ORDERS) is moved
    assert moved.directory == "/b/orders-0"
    assert read_all(moved).startswith(records)
    assert moved.leader_epochs.entries == log.leader_epochs.entries
    assert [entry.producer_id for entry in moved.producers] == [5]
    assert moved.high_watermark == 10
    assert (len(names(broker, "/a")), names(broker, "/b")) == (1, ["orders-0"])
    append(moved, b"after it", leader_epoch=3)
    moved.roll()
    append(moved, b"in a new segment", leader_epoch=3)
    broker.restart()
    again = broker.log()
    assert again.directory == "/b/orders-0"
    assert values_of(read_all(again))[-1] == b"in a new segment"
    assert [entry.producer_id for entry in again.producers] == [5]
    broker.now_ms += CONFIG.file_delete_delay_ms
    broker.logs.removals.remove_due()
    assert names(broker, "/a") == []


def test_the_name_is_kafkas_and_the_lag_is_shown() -> None:
    broker, log = started()
    move = begin(broker)
    (name,) = names(broker, "/b")
    assert name.startswith("orders-0.")
    assert name.endswith("-future")
    assert move.advance()
    first, second = broker.logs.directories()
    assert (len(first.logs), len(first.moves)) == (1, 0)
    assert (len(second.logs), len(second.moves)) == (0, 1)
    assert 0 < second.moves[0].future.log_end_offset < log.log_end_offset


def test_reads_of_the_former_log_give_no_hint_for_the_new_one() -> None:
    broker, log = started()
    hint = read_slice(log, 0, 1, log.log_end_offset).hint
    moved = complete(broker, begin(broker))
    part = read_slice(moved, hint.offset, 1, moved.log_end_offset, hint)
    assert part.hint.segment in moved.segments


def test_what_is_deleted_meanwhile_is_deleted_there() -> None:
    broker, log = started()
    move = begin(broker)
    move.advance()
    log.delete_records_before(9)
    moved = complete(broker, move)
    assert (moved.log_start_offset, moved.log_end_offset) == (9, 12)
    broker.crash()
    assert broker.log().log_start_offset == 9


def test_a_log_that_starts_anew_meanwhile_is_copied_anew() -> None:
    broker, log = started()
    move = begin(broker)
    while move.advance():
        pass
    broker.logs.start_anew({ORDERS: 5})
    append(log, b"other", leader_epoch=7)
    moved = complete(broker, move)
    assert (moved.log_start_offset, values_of(read_all(moved))) == (5, [b"other"])


def test_a_truncated_log_is_followed() -> None:
    broker, log = started()
    move = begin(broker)
    while move.advance():
        pass
    broker.logs.truncate({ORDERS: 7})
    append(log, b"another", leader_epoch=4)
    expected = read_all(log)
    moved = complete(broker, move)
    assert read_all(moved) == expected
    assert moved.leader_epochs.entries == log.leader_epochs.entries


def test_aborted_transactions_are_known_there() -> None:
    broker, log = started()
    first = append(log, b"x", producer_id=3, producer_epoch=0, base_sequence=0, transactional=True)
    append_marker(log, ControlType.ABORT, 3, 0, leader_epoch=2)
    moved = complete(broker, begin(broker))
    expected = log.aborted_transactions(0, log.log_end_offset)
    assert [aborted.first_offset for aborted in expected] == [first.first_offset]
    assert moved.aborted_transactions(0, moved.log_end_offset) == expected


def test_a_move_goes_on_after_a_restart_and_after_a_crash() -> None:
    broker, log = started()
    begin(broker).advance()
    for interrupt in (broker.restart, broker.crash):
        interrupt()
        log, future = broker.log(), broker.logs.futures.all[ORDERS]
        assert log.log_directory.path == "/a"
        assert 0 < future.log_end_offset < log.log_end_offset
        LogMove(log, future).advance()
    moved = complete(broker, LogMove(log, future))
    assert values_of(read_all(moved)) == [b"%d" % number for number in range(12)]


def test_a_copy_that_has_more_than_its_log_after_a_crash_is_truncated() -> None:
    broker = Broker("/a", "/b")
    log = broker.create()
    append(log, b"kept")
    log.flush()
    append(log, b"lost")
    while begin_or_go_on(broker).advance():
        pass
    broker.crash()
    log, future = broker.log(), broker.logs.futures.all[ORDERS]
    append(log, b"other")
    expected = read_all(log)
    moved = complete(broker, LogMove(log, future))
    assert read_all(moved) == expected


def begin_or_go_on(broker: Broker) -> LogMove:
    future = broker.logs.futures.all.get(ORDERS)
    return begin(broker) if future is None else LogMove(broker.log(), future)


def test_a_crash_before_the_old_directory_goes_leaves_the_newer_one() -> None:
    broker, _ = started()
    move = begin(broker)
    while move.advance():
        pass
    assert move.finish()
    broker.logs.promote(move.future)
    append(move.future, b"in the new one", leader_epoch=2)
    move.future.flush()
    broker.crash()
    found = broker.log()
    assert values_of(read_all(found))[-1] == b"in the new one"
    (aside,) = names(broker, "/a")
    assert aside.endswith("-stray")
    broker.restart()
    assert broker.log().directory == "/b/orders-0"


def test_a_copy_is_the_log_when_nothing_else_is_left() -> None:
    broker, _ = started()
    move = begin(broker)
    while move.advance():
        pass
    broker.logs.stop()
    broker.filesystem.remove_tree("/a/orders-0")
    broker.start()
    assert broker.log().directory == "/b/orders-0"
    assert broker.log().log_end_offset == 12


def test_a_copy_waits_for_the_directory_of_its_log() -> None:
    broker, _ = started()
    move = begin(broker)
    move.advance()
    broker.logs.stop()
    broker.filesystem.rename("/a/meta.properties", "/a/elsewhere")
    broker.filesystem.write_atomically("/a/meta.properties", b"damaged")
    with pytest.raises(Exception, match=r"meta\.properties"):
        broker.start()
    broker.filesystem.rename("/a/elsewhere", "/a/meta.properties")
    broker.start()
    assert ORDERS in broker.logs.futures.all


def test_a_deleted_topic_takes_its_copy_along() -> None:
    broker, _ = started()
    begin(broker).advance()
    broker.logs.delete(ORDERS)
    assert broker.logs.futures.all == {}
    assert all(name.endswith("-delete") for path in ("/a", "/b") for name in names(broker, path))


def test_what_cannot_be_moved_is_refused() -> None:
    broker, log = started()
    futures = broker.logs.futures
    with pytest.raises(ApiError) as caught:
        futures.find_directory("/c")
    assert caught.value.code is ErrorCode.log_dir_not_found
    with pytest.raises(ApiError) as caught:
        futures.validate_name(TopicPartition("x" * 249, 0))
    assert caught.value.code is ErrorCode.invalid_topic_exception
    second = futures.find_directory("/b")
    second.on_error(OSError(5, "broken"))
    for work in (lambda: futures.find_directory("/b"), lambda: futures.create(log, second)):
        with pytest.raises(ApiError) as caught:
            work()
        assert caught.value.code is ErrorCode.kafka_storage_error


def test_a_partition_is_made_where_it_was_wished() -> None:
    broker = Broker("/a", "/b")
    futures = broker.logs.futures
    futures.wish(ORDERS, futures.find_directory("/b"))
    assert broker.create().log_directory.path == "/b"


def test_no_recovery_point_of_a_former_log_is_left() -> None:
    broker, _ = started()
    broker.logs.checkpoint()
    complete(broker, begin(broker))
    path = "/a/recovery-point-offset-checkpoint"
    assert ORDERS not in read_offsets(broker.filesystem, path)
    assert read_offsets(broker.filesystem, path.replace("/a", "/b"))[ORDERS] == 12


class MovingLife(Life):
    """Like `Life`, with a second directory that the log moves to, and back."""

    def start(self) -> None:
        self.logs = LogManager(
            ["/a", "/b"], self.disk, lambda: NOW_MS, config_of_topic=lambda _: MOVING
        )
        self.logs.start(1)
        self.log = self.logs.get(ORDERS) or self.logs.create(ORDERS, TOPIC_ID, MOVING)

    def live(self) -> None:
        self.start()
        self.append(7)
        self.flush()
        self.logs.checkpoint()
        self.move()
        self.append(4)
        self.flush()
        self.move()
        self.logs.stop()

    def move(self) -> None:
        futures, former = self.logs.futures, self.log
        path = "/b" if former.log_directory.path == "/a" else "/a"
        future = futures.create(former, futures.find_directory(path))
        move = LogMove(former, future)
        self.logs.settle(future.log_directory)
        move.advance()
        self.append(2)
        self.flush()
        while move.advance():
            pass
        self.append(1)
        self.flush()
        assert move.finish()
        self.logs.promote(future)
        self.log = future
        self.append(1)
        self.flush()
        self.logs.settle(future.log_directory)
        self.logs.retire(former)
        self.logs.settle(former.log_directory)


def steps_of_a_move() -> int:
    life = MovingLife(0)
    life.disk.power_loss_after(10**9)
    life.live()
    assert life.disk._steps_left is not None
    return 10**9 - life.disk._steps_left


@pytest.mark.parametrize("seed", range(3))
def test_power_loss_at_every_step_of_a_move(seed: int) -> None:
    for step in range(steps_of_a_move()):
        life = MovingLife(1000 * seed + step)
        life.disk.power_loss_after(step)
        with pytest.raises(PowerLoss):
            life.live()
        life.disk.crash()
        life.check()


def test_a_full_directory_keeps_the_log_where_it_is() -> None:
    broker, log = started()
    move = begin(broker)
    broker.filesystem.disk_full()
    with pytest.raises(ApiError):
        move.advance()
    assert broker.logs.get(ORDERS) is log
