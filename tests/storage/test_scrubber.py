import pytest
from tests.storage.batches import (
    NOW_MS,
    PARTITION,
    append,
    append_marker,
    open_log,
    read_all,
    values_of,
)

from ottla.records.batch import iterate_headers
from ottla.records.decoder import ControlType
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptLog, KnownDamage
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.scrubber import STATE_FILE, DirectoryScrubber

CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=100)
DAY_MS = 86_400_000


class Kit:
    def __init__(self, filesystem: FaultyFilesystem | None = None) -> None:
        self.filesystem = filesystem or FaultyFilesystem()
        self.now_ms = NOW_MS
        self.heard: list[PartitionLog] = []
        self.log = open_log(self.filesystem, CONFIG, clean_shutdown=True)
        self.scrubber = self.new_scrubber()

    def new_scrubber(self) -> DirectoryScrubber:
        scrubber = DirectoryScrubber(
            self.log.log_directory, lambda: self.now_ms, DAY_MS, self.heard.append
        )
        scrubber.load()
        return scrubber

    def fill(self, count: int = 60) -> None:
        for index in range(count):
            append(self.log, b"%04d" % index * 5, timestamp=NOW_MS + index)
        self.log.high_watermark = self.log.log_end_offset
        self.log.flush()

    def step(self, bytes_max: int = 1 << 30) -> None:
        self.scrubber.step({PARTITION: self.log}, bytes_max)

    def flip(self, segment_index: int, position: int, suffix: str = ".log", bit: int = 0) -> None:
        self.filesystem.flip_bit(self.log.segments[segment_index].stem + suffix, position, bit)

    def reopen(self) -> None:
        self.log = open_log(self.filesystem, CONFIG, clean_shutdown=True)
        self.log.high_watermark = self.log.log_end_offset
        self.scrubber = self.new_scrubber()


@pytest.fixture
def kit() -> Kit:
    kit = Kit()
    kit.fill()
    return kit


def test_an_intact_log_has_no_damage(kit: Kit) -> None:
    kit.step()
    assert kit.log.damage == []
    assert kit.heard == []
    closed = sum(segment.size for segment in kit.log.segments[:-1])
    assert kit.scrubber.bytes_count == closed


def test_damage_is_told_once_and_not_served(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    kit.flip(1, 150)
    kit.step()
    (damage,) = kit.log.damage
    assert kit.heard == [kit.log]
    assert caplog.text.count("is damaged from position") == 1
    with pytest.raises(KnownDamage):
        kit.log.read(damage.first_offset, 1 << 20, kit.log.log_end_offset)
    before = kit.log.read(damage.first_offset - 1, 1 << 20, kit.log.log_end_offset)
    assert before is not None
    assert before.next_offset == damage.first_offset
    behind = kit.log.read(damage.next_offset, 1, kit.log.log_end_offset)
    assert behind is not None
    assert next(iterate_headers(behind.read()))[1].base_offset == damage.next_offset
    kit.now_ms += 2 * DAY_MS
    kit.step()
    assert caplog.text.count("is damaged from position") == 1
    assert len(kit.heard) == 1


def test_truncating_at_the_damage_removes_it(kit: Kit) -> None:
    kit.flip(1, 150)
    kit.step()
    (damage,) = kit.log.damage
    kit.log.truncate_to(damage.first_offset)
    assert kit.log.damage == []
    assert kit.log.log_end_offset == damage.first_offset
    append(kit.log, b"anew")
    assert values_of(read_all(kit.log))[-1] == b"anew"


@pytest.mark.parametrize("bit", range(6))
@pytest.mark.parametrize("entry", range(4))
def test_truncating_at_the_damage_removes_it_though_the_index_is_wrong(
    kit: Kit, entry: int, bit: int
) -> None:
    kit.log.close()
    kit.flip(1, 350)
    kit.flip(1, 8 * entry + 7, ".index", bit)  # The last byte of a position.
    kit.reopen()
    kit.step()
    (damage,) = kit.log.damage
    kit.log.truncate_to(kit.log.end_before(damage.first_offset))
    assert kit.log.damage == []
    assert kit.log.log_end_offset == damage.first_offset
    append(kit.log, b"anew")
    kit.log.high_watermark = kit.log.log_end_offset
    assert values_of(read_all(kit.log))[-1] == b"anew"


def test_work_is_split_into_steps(kit: Kit) -> None:
    kit.flip(2, 150)
    for _ in range(1000):
        if kit.log.damage:
            break
        before = kit.scrubber.bytes_count
        kit.step(200)
        assert kit.scrubber.bytes_count - before < 1000
    assert kit.log.damage


def test_a_restart_goes_on_where_the_last_process_was(kit: Kit) -> None:
    kit.step(2500)
    kit.scrubber.save([kit.log])
    done = kit.scrubber.bytes_count
    kit.scrubber = kit.new_scrubber()
    kit.step()
    closed = sum(segment.size for segment in kit.log.segments[:-1])
    assert closed - done <= kit.scrubber.bytes_count < closed


def test_no_second_pass_before_its_time(kit: Kit) -> None:
    kit.step()
    done = kit.scrubber.bytes_count
    kit.scrubber.save([kit.log])
    kit.scrubber = kit.new_scrubber()
    kit.now_ms += DAY_MS - 1
    kit.step()
    assert kit.scrubber.bytes_count == 0
    kit.now_ms += 1
    kit.step()
    assert kit.scrubber.bytes_count == done


def test_what_was_damaged_is_examined_first_after_a_restart(kit: Kit) -> None:
    kit.flip(1, 150)
    kit.step()
    kit.scrubber.save([kit.log])
    kit.log.close()
    kit.reopen()
    kit.step(1)
    assert len(kit.log.damage) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"next": 1}', b'{"next":[1,2],"x":0}'])
def test_a_state_that_is_not_understood_means_from_the_beginning(kit: Kit, content: bytes) -> None:
    kit.filesystem.write_atomically(f"{kit.log.log_directory.path}/{STATE_FILE}", content)
    kit.scrubber = kit.new_scrubber()
    kit.step()
    assert kit.scrubber.bytes_count


def test_a_truncation_meanwhile_is_no_damage(kit: Kit) -> None:
    kit.step(150)
    kit.log.truncate_to(3)
    kit.step()
    assert kit.log.damage == []


@pytest.mark.parametrize(
    ("suffix", "position"),
    [(".index", 3), (".index", 7), (".timeindex", 6), (".timeindex", 11), (".timeindex", 0)],
)
def test_a_wrong_index_is_made_anew_and_misleads_nobody(
    kit: Kit, suffix: str, position: int
) -> None:
    kit.log.close()
    kit.flip(1, position, suffix)
    kit.reopen()
    for offset in range(60):
        try:
            found = kit.log.offset_for_timestamp(NOW_MS + offset)
            assert found is not None
            assert found.offset == offset
            part = kit.log.read(offset, 1, 60)
            assert part is not None
            assert next(iterate_headers(part.read()))[1].base_offset == offset
        except CorruptLog:
            kit.step(1)  # It is suspect now, and checked first.
    for offset in range(60):
        found = kit.log.offset_for_timestamp(NOW_MS + offset)
        assert found is not None
        assert found.offset == offset
        assert kit.log.read(offset, 1, 60) is not None
    kit.now_ms += 2 * DAY_MS
    kit.step()
    kit.log.close()
    fresh = open_log(kit.filesystem, CONFIG, clean_shutdown=True)
    for segment in fresh.segments[:-1]:
        assert len(segment.offset_index.pairs()) > 2


def test_retention_does_not_believe_a_wrong_time_index(kit: Kit) -> None:
    kit.log.close()
    last = kit.filesystem.size(kit.log.segments[1].stem + ".timeindex") - 12
    kit.flip(1, last + 2, ".timeindex", bit=0)
    log = open_log(kit.filesystem, CONFIG, clean_shutdown=True)
    assert log.segments[1].largest.timestamp >= NOW_MS


@pytest.mark.parametrize("position", [1, 9, 17, 25, 33])
def test_a_wrong_list_of_aborted_transactions_is_made_anew(position: int) -> None:
    kit = Kit()
    for index in range(12):
        append(
            kit.log,
            b"x" * 100,
            producer_id=7,
            producer_epoch=0,
            base_sequence=index,
            transactional=True,
        )
        append_marker(kit.log, ControlType.ABORT, 7, 0)
    kit.log.high_watermark = kit.log.log_end_offset
    expected = kit.log.aborted_transactions(0, kit.log.log_end_offset)
    kit.log.close()
    kit.flip(1, position, ".txnindex", bit=3)
    kit.reopen()
    try:
        found = kit.log.aborted_transactions(0, kit.log.log_end_offset)
    except CorruptLog:
        kit.step(1)
        found = kit.log.aborted_transactions(0, kit.log.log_end_offset)
    assert [aborted[:3] for aborted in found] == [aborted[:3] for aborted in expected]


def test_a_scrubber_is_due_until_its_pass_is_over_and_for_what_is_suspect(kit: Kit) -> None:
    assert kit.scrubber.is_due(1000)
    kit.step()
    assert not kit.scrubber.is_due(1000)
    kit.log.log_directory.suspect(PARTITION, 0, "it looks wrong")
    assert kit.scrubber.is_due(0)
    kit.step()
    assert not kit.scrubber.is_due(1000)
    kit.now_ms += DAY_MS
    assert kit.scrubber.is_due(1000)
    assert not kit.scrubber.is_due(0)
