"""Flipped bits in every field of a batch, at every position of a log."""

import pytest
from tests.storage.batches import NOW_MS, PARTITION, append, open_log, values_of

from ottla.records.batch import HEADER_SIZE, iterate_headers
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptLog
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.scrubber import DirectoryScrubber

BATCHES_COUNT = 9
IN_A_BATCH = 2

FIELDS = {
    "base offset, low": (7, 3),
    "base offset, high": (3, 0),
    "base offset, sign": (0, 7),
    "length, low": (11, 0),
    "length, high": (8, 3),
    "leader epoch": (14, 2),
    "magic": (16, 0),
    "checksum": (18, 1),
    "attributes": (22, 2),
    "last offset delta": (26, 1),
    "max timestamp": (41, 4),
    "producer id": (50, 1),
    "records count": (60, 0),
    "payload": (HEADER_SIZE + 6, 5),
}


def filled(filesystem: FaultyFilesystem, config: LogConfig) -> PartitionLog:
    log = open_log(filesystem, config)
    for index in range(BATCHES_COUNT):
        append(log, b"value %d" % index, b"and %d" % index, leader_epoch=3 + index // 4)
    log.high_watermark = log.log_end_offset
    return log


def read_all_that_can_be(log: PartitionLog) -> tuple[dict[int, bytes], set[int]]:
    """Values by offset, and refused offsets, for a consumer that reads from each one."""
    found: dict[int, bytes] = {}
    refused: set[int] = set()
    for offset in range(log.log_end_offset):
        try:
            part = log.read(offset, 1, log.log_end_offset)
        except CorruptLog:
            refused.add(offset)
            continue
        assert part is not None
        data = part.read()
        header = next(iterate_headers(data))[1]
        assert header.base_offset <= offset <= header.last_offset, "offsets jump"
        for index, value in enumerate(values_of(data)):
            assert value is not None
            found[header.base_offset + index] = value
    return found, refused


def expected(offset: int) -> bytes:
    index, second = divmod(offset, IN_A_BATCH)
    return b"and %d" % index if second else b"value %d" % index


@pytest.mark.parametrize("batch_index", [0, 3, 4, BATCHES_COUNT - 1])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "kill -9"])
@pytest.mark.parametrize("segment_bytes", [1 << 30, 400], ids=["one segment", "many"])
def test_no_wrong_byte_is_served(
    field: str, batch_index: int, clean: bool, segment_bytes: int
) -> None:
    filesystem = FaultyFilesystem()
    config = LogConfig(segment_bytes=segment_bytes)
    log = filled(filesystem, config)
    batches = [
        (segment.path, position)
        for segment in log.segments
        if segment.size
        for position, _ in iterate_headers(segment.file().read(0, segment.size))
    ]
    log.flush()
    log.flush_leader_epochs()
    recovery_point = log.flushed_offset
    if clean:
        log.close()
    path, position = batches[batch_index]
    byte, bit = FIELDS[field]
    filesystem.flip_bit(path, position + byte, bit)
    again = open_log(
        filesystem,
        config,
        clean_shutdown=clean,
        recovery_point=recovery_point,
        pass_over_damage=True,
    )
    assert again.log_end_offset == recovery_point
    found, _ = read_all_that_can_be(again)
    assert all(value == expected(offset) for offset, value in found.items())
    scrubber = DirectoryScrubber(again.log_directory, lambda: NOW_MS, 0, lambda _: None)
    scrubber.step({PARTITION: again}, 1 << 30)
    found, refused = read_all_that_can_be(again)
    assert all(value == expected(offset) for offset, value in found.items())
    damaged = range(batch_index * IN_A_BATCH, (batch_index + 1) * IN_A_BATCH)
    assert set(damaged) <= refused
    assert len(refused) <= 2 * IN_A_BATCH, "the one before may be under suspicion, not more"
    assert again.damage
