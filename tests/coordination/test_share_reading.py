"""How much of the log a share fetch reads."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.coordination.share_reading import Enough, read_enough
from ottla.records.builder import Record, build_batch
from ottla.replication.partition import Partition
from ottla.storage.errors import NotCached

BATCH = bytes(build_batch([Record(value=bytes(20_000))] * 2))


class Log:
    """Batches of two records; reads are counted."""

    def __init__(self, batches_count: int) -> None:
        self.batches_count = batches_count
        self.read_bytes = 0

    def read(self, offset: int, size_max: int, *, committed_only: bool, cached_only: bool) -> Any:
        del committed_only, cached_only
        first = offset // 2
        count = min(max(1, size_max // len(BATCH)), self.batches_count - first)
        if count <= 0:
            return None
        batches = (
            bytes(build_batch([Record(value=bytes(20_000))] * 2, base_offset=2 * index))
            for index in range(first, first + count)
        )
        content = b"".join(batches)
        self.read_bytes += len(content)
        return SimpleNamespace(read=lambda: content, read_cached=lambda: content)


def read(log: Log, wanted: Enough) -> tuple[int, Enough]:
    content, left = read_enough(cast("Partition", log), 0, wanted, committed_only=False)
    assert log.read_bytes - len(content) <= len(BATCH)
    return len(content) // len(BATCH), left


def test_no_more_is_read_than_the_records_that_are_wanted_need() -> None:
    batches, left = read(Log(1_000), Enough(records=10, bytes_min=1, bytes_max=8 << 20))
    assert 5 <= batches <= 10
    assert left.is_met


def test_fewer_records_are_read_when_there_are_no_more() -> None:
    batches, left = read(Log(2), Enough(records=10, bytes_min=1, bytes_max=8 << 20))
    assert batches == 2
    assert left.records == 6
    assert not left.is_met


def test_the_bytes_that_are_wanted_are_read_though_there_are_records_enough() -> None:
    batches, left = read(Log(1_000), Enough(records=1, bytes_min=300_000, bytes_max=8 << 20))
    assert batches * len(BATCH) >= 300_000
    assert left.is_met


def test_not_more_bytes_are_read_than_there_is_room_for() -> None:
    batches, left = read(Log(1_000), Enough(records=1_000, bytes_min=1, bytes_max=200_000))
    assert batches * len(BATCH) <= 200_000
    assert not left.is_met or left.bytes_max <= 0


def test_one_batch_is_read_though_it_is_larger_than_the_room() -> None:
    batches, left = read(Log(1_000), Enough(records=1, bytes_min=1, bytes_max=1_000))
    assert batches == 1
    assert left.is_met


def test_more_than_others_would_wait_for_is_left_to_a_thread() -> None:
    log = Log(1_000)
    wanted = Enough(records=1_000, bytes_min=1, bytes_max=8 << 20)
    with pytest.raises(NotCached):
        read_enough(cast("Partition", log), 0, wanted, committed_only=False, cached_only=True)
    assert log.read_bytes < 1 << 20
