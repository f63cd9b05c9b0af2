import pytest
from tests.storage.batches import NOW_MS, append, open_log, produced, read_all

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import iterate_headers
from ottla.records.errors import CorruptBatch
from ottla.storage.cleanable import cleanable_of
from ottla.storage.config import LogConfig
from ottla.storage.imported_batches import append_imported
from ottla.storage.leader_epochs import EpochEntry

_OPEN = LogConfig(record_import="open", cleanup_policy=("delete", "compact"), segment_bytes=200)


def test_batches_take_the_epoch_of_the_leader_that_imports_them() -> None:
    log = open_log(config=_OPEN)
    for epoch, offset in ((3, 0), (5, 10), (5, 20)):
        records, header = produced(b"a", b"b", base_offset=offset, leader_epoch=90)
        end = log.log_end_offset
        assert append_imported(log, records, end, epoch).last_offset == header.last_offset
    assert [header.partition_leader_epoch for _, header in iterate_headers(read_all(log))] == [
        3,
        5,
        5,
    ]
    assert log.leader_epochs.entries == (EpochEntry(3, 0), EpochEntry(5, 10))


def test_nothing_is_removed_while_a_topic_is_open() -> None:
    log = open_log(config=_OPEN)
    for offset in range(0, 30, 10):
        records, _ = produced(b"x" * 100, base_offset=offset, timestamp=1)
        append_imported(log, records, log.log_end_offset, 0)
    log.high_watermark = log.log_end_offset
    assert len(log.segments) == 3
    assert log.delete_expired(NOW_MS) == 0
    assert not cleanable_of(log, None, NOW_MS).is_due
    log.configure(LogConfig(record_import="closed", segment_bytes=200))
    assert cleanable_of(log, None, NOW_MS).is_due
    assert log.delete_expired(NOW_MS) == 3


def test_a_gap_that_no_segment_can_hold_is_refused() -> None:
    log = open_log(config=_OPEN)
    records, _ = produced(b"far", base_offset=2**31)
    with pytest.raises(CorruptBatch):
        append_imported(log, records, 0, 0)
    assert log.log_end_offset == 0


@pytest.mark.parametrize("state", ["none", "closed"])
def test_other_topics_take_producers_and_no_imports(state: str) -> None:
    log = open_log(config=LogConfig(record_import=state))
    append(log)
    records, _ = produced(b"x", base_offset=1)
    with pytest.raises(ApiError) as caught:
        append_imported(log, records, 1, 0)
    assert caught.value.code is ErrorCode.policy_violation
