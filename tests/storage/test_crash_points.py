"""The power fails at every step of a broker's life; acknowledged records survive."""

from uuid import UUID

import pytest

from ottla.protocol.topics import TopicPartition
from ottla.records.decoder import iterate_records
from ottla.storage.batch_walk import walk
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem, PowerLoss
from ottla.storage.manager import LogManager

from .batches import NOW_MS, append

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=7)
CONFIG = LogConfig(segment_bytes=330, index_interval_bytes=100, retention_bytes=900)


class Life:
    """`acked` must be there after a crash; nothing but `written` may be."""

    def __init__(self, seed: int) -> None:
        self.disk = FaultyFilesystem(seed)
        self.acked: dict[int, bytes] = {}
        self.written: dict[int, set[bytes]] = {}
        self.start_offset = 0
        self.counter = 0

    def start(self) -> None:
        self.logs = LogManager(
            ["/data"], self.disk, lambda: NOW_MS, config_of_topic=lambda _: CONFIG
        )
        self.logs.start(1)
        self.log = self.logs.get(ORDERS) or self.logs.create(ORDERS, TOPIC_ID, CONFIG)

    def append(self, count: int) -> None:
        for _ in range(count):
            self.counter += 1
            value = b"%d" % self.counter * 20
            offset = self.log.log_end_offset
            self.written.setdefault(offset, set()).add(value)
            append(self.log, value, leader_epoch=self.counter // 4)

    def flush(self) -> None:
        flushed = self.log.flush()
        self.log.high_watermark = flushed
        data = self.read()
        self.acked = {offset: value for offset, value in data.items() if offset < flushed}

    def truncate(self, offset: int) -> None:
        self.acked = {known: value for known, value in self.acked.items() if known < offset}
        self.logs.truncate({ORDERS: offset})

    def delete_records(self, offset: int) -> None:
        self.log.delete_records_before(offset)
        self.start_offset = offset

    def retain(self) -> None:
        self.start_offset = self.log.log_end_offset
        self.logs.retain()
        self.start_offset = self.log.log_start_offset

    def read(self) -> dict[int, bytes]:
        return {
            record.offset: record.value or b""
            for segment in self.log.segments
            if segment.size
            for batch in walk(segment.file(), 0, segment.size)
            for record in iterate_records(segment.file().read(batch.position, batch.size))
        }

    def live(self) -> None:
        self.start()
        self.append(3)
        self.flush()
        self.append(4)
        self.log.roll()
        self.flush()
        self.logs.checkpoint()
        self.append(2)
        self.truncate(8)
        self.append(3)
        self.flush()
        self.logs.checkpoint()
        self.truncate(4)
        self.append(6)
        self.flush()
        self.delete_records(3)
        self.logs.checkpoint()
        self.append(2)
        self.retain()
        self.logs.stop()
        self.start()
        self.append(5)
        self.flush()
        self.logs.stop()

    def check(self) -> None:
        self.start()
        found = self.read()
        assert self.log.log_start_offset <= max(self.start_offset, self.log.log_end_offset)
        for offset, value in self.acked.items():
            if offset >= max(self.start_offset, self.log.log_start_offset):
                assert found[offset] == value
        for offset, value in found.items():
            assert value in self.written[offset]
        offsets = sorted(found)
        assert offsets == list(range(offsets[0], self.log.log_end_offset)) if offsets else True
        epochs = self.log.leader_epochs.entries
        assert all(entry.start_offset <= self.log.log_end_offset for entry in epochs)
        self.append(1)
        self.flush()
        assert max(self.read()) == self.log.log_end_offset - 1


def steps_of_a_life() -> int:
    life = Life(0)
    life.disk.power_loss_after(10**9)
    life.live()
    assert life.disk._steps_left is not None
    return 10**9 - life.disk._steps_left


@pytest.mark.parametrize("seed", range(3))
def test_power_loss_at_every_step(seed: int) -> None:
    for step in range(steps_of_a_life()):
        life = Life(1000 * seed + step)
        life.disk.power_loss_after(step)
        with pytest.raises(PowerLoss):
            life.live()
        life.disk.crash()
        life.check()
