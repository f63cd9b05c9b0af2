import pytest

from ottla.records.batch import BatchHeader, TimestampType, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import ControlType, Marker, build_marker, iterate_records
from ottla.records.errors import CorruptBatch
from ottla.storage.batch_filter import BatchFilter
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.offset_map import OffsetMap
from ottla.storage.producer_state import LastRecord
from ottla.storage.transaction_index import AbortedTransaction

NOW_MS = 5000
RETENTION_MS = 100


class Fixture:
    def __init__(self, *, latest_offset: int = 100, **offsets: int) -> None:
        self.offsets = OffsetMap(1 << 20)
        for key, offset in offsets.items():
            self.offsets.put(key.encode(), offset)
        self.offsets.latest_offset = latest_offset
        self.transactions = CleanedTransactions()
        self.last_records: dict[int, LastRecord] = {}
        self.aborted: list[AbortedTransaction] = []

    def apply(
        self, batch: bytearray | bytes, *, now_ms: int = NOW_MS, last: bool = False
    ) -> bytes | None:
        filter_ = BatchFilter(
            self.offsets,
            self.transactions,
            self.last_records,
            self.aborted.append,
            now_ms,
            RETENTION_MS,
        )
        kept = filter_.apply(memoryview(batch), read_header(batch), last=last)
        return None if kept is None else bytes(kept)


def batch(*records: tuple[str, bytes | None], offset: int = 10, **options: object) -> bytearray:
    return build_batch(
        [
            Record(timestamp=1000 + index, key=key.encode(), value=value)
            for index, (key, value) in enumerate(records)
        ],
        base_offset=offset,
        leader_epoch=3,
        **options,  # type: ignore[arg-type]
    )


def offsets_of(data: bytes | None) -> list[int]:
    assert data is not None
    return [record.offset for record in iterate_records(data)]


def test_the_last_record_of_each_key_stays() -> None:
    fixture = Fixture(a=12, b=11, c=99)
    original = batch(("a", b"1"), ("b", b"2"), ("a", b"3"), ("c", b"4"), ("new", b"5"))
    kept = fixture.apply(original)
    assert offsets_of(kept) == [11, 12, 14]
    assert kept is not None
    header, before = read_header(kept), read_header(original)
    assert (header.base_offset, header.last_offset) == (10, 14)
    assert header.partition_leader_epoch == 3
    assert header.base_timestamp == before.base_timestamp
    assert header.max_timestamp == before.max_timestamp == 1004
    assert [record.timestamp for record in iterate_records(kept)] == [1001, 1002, 1004]


def test_the_largest_timestamp_goes_with_its_record() -> None:
    kept = Fixture(b=50).apply(batch(("a", b"1"), ("b", b"2")))
    assert kept is not None
    assert read_header(kept).max_timestamp == 1000


@pytest.mark.parametrize("compression", range(5))
def test_a_rewritten_batch_keeps_its_codec_producer_and_headers(compression: int) -> None:
    records = [
        Record(timestamp=5, key=b"a", value=b"1"),
        Record(timestamp=6, key=b"b", value=b"2" * 50, headers=(("name", None), ("x", b"y"))),
    ]
    original = build_batch(
        records,
        base_offset=10,
        compression=compression,
        producer_id=7,
        producer_epoch=1,
        base_sequence=40,
        timestamp_type=TimestampType.APPEND,
        max_timestamp=77,
    )
    fixture = Fixture(a=50)
    kept = fixture.apply(original)
    assert kept is not None
    header = read_header(kept)
    assert header.compression == compression
    assert (header.producer_id, header.producer_epoch, header.last_sequence) == (7, 1, 41)
    assert header.timestamp_type is TimestampType.APPEND
    assert list(iterate_records(kept)) == [
        Record(11, 77, b"b", b"2" * 50, (("name", None), ("x", b"y")))
    ]


def test_a_batch_that_loses_nothing_is_copied() -> None:
    original = batch(("a", b"1"), ("b", b"2"), compression=4)
    assert Fixture(a=10, b=11).apply(original) == bytes(original)


def test_a_batch_that_loses_everything_goes() -> None:
    assert Fixture(a=20).apply(batch(("a", b"1"))) is None
    keyless = build_batch([Record(value=b"v")], base_offset=10)
    assert Fixture().apply(keyless) is None


def test_records_past_the_map_stay() -> None:
    original = batch(("a", b"1"), ("b", None), offset=101)
    assert Fixture(a=500).apply(original) == bytes(original)
    straddling = batch(("a", b"1"), ("a", b"2"), offset=100)
    assert offsets_of(Fixture(a=101, latest_offset=100).apply(straddling)) == [101]


def test_a_tombstone_stays_until_its_delete_horizon() -> None:
    fixture = Fixture(a=11, b=10)
    first = fixture.apply(batch(("b", b"1"), ("a", None)))
    assert first is not None
    assert offsets_of(first) == [10, 11]
    assert read_header(first).delete_horizon_ms == NOW_MS + RETENTION_MS
    assert [record.timestamp for record in iterate_records(first)] == [1000, 1001]
    assert fixture.apply(first, now_ms=NOW_MS + RETENTION_MS - 1) == first
    last = fixture.apply(first, now_ms=NOW_MS + RETENTION_MS)
    assert offsets_of(last) == [10]


def test_a_rewritten_batch_keeps_its_delete_horizon() -> None:
    horizon = 9000
    original = batch(("a", None), ("b", b"1"), delete_horizon_ms=horizon)
    kept = Fixture(b=50).apply(original)
    assert kept is not None
    assert offsets_of(kept) == [10]
    assert read_header(kept).delete_horizon_ms == horizon


def emptied(data: bytes | None) -> BatchHeader:
    assert data is not None
    assert len(data) == 61
    header = read_header(data)
    assert header.records_count == 0
    assert list(iterate_records(data)) == []
    return header


def test_the_last_sequence_of_a_producer_stays() -> None:
    fixture = Fixture(a=50)
    fixture.last_records[7] = LastRecord(11, 1)
    options = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 40}
    original = batch(("a", b"1"), ("a", b"2"), compression=1, **options)
    header = emptied(fixture.apply(original))
    assert (header.producer_id, header.producer_epoch, header.last_sequence) == (7, 1, 41)
    assert (header.base_offset, header.last_offset, header.max_timestamp) == (10, 11, 1001)
    assert header.compression == 0
    assert fixture.apply(batch(("a", b"1"), offset=9, **options)) is None
    assert emptied(fixture.apply(bytes(fixture.apply(original) or b""))) == header


def test_the_last_batch_stays() -> None:
    original = batch(("a", b"1"), producer_id=7, producer_epoch=1, transactional=True)
    header = emptied(Fixture(a=50).apply(original, last=True))
    assert (header.next_offset, header.partition_leader_epoch) == (11, 3)
    assert (header.producer_id, header.is_transactional) == (-1, False)


def aborted_batch(offset: int) -> bytearray:
    return batch(("a", b"1"), offset=offset, producer_id=7, producer_epoch=0, transactional=True)


def marker(kind: ControlType, offset: int, epoch: int = 0) -> bytearray:
    return build_marker(
        Marker(kind, 0),
        timestamp_ms=1000,
        producer_id=7,
        producer_epoch=epoch,
        base_offset=offset,
    )


ABORTED = AbortedTransaction(producer_id=7, first_offset=10, last_offset=12, last_stable_offset=13)


def test_aborted_records_go_first_and_their_marker_later() -> None:
    fixture = Fixture()
    fixture.transactions.add_aborted([ABORTED])
    assert fixture.apply(aborted_batch(10)) is None
    abort = marker(ControlType.ABORT, 12)
    assert fixture.apply(abort) == bytes(abort)
    assert fixture.aborted == [ABORTED]

    second = Fixture()
    second.transactions.add_aborted([ABORTED])
    waiting = second.apply(abort)
    assert waiting is not None
    assert read_header(waiting).delete_horizon_ms == NOW_MS + RETENTION_MS
    assert second.aborted == []

    third = Fixture()
    assert third.apply(waiting, now_ms=NOW_MS + RETENTION_MS - 1) == waiting
    assert third.apply(waiting, now_ms=NOW_MS + RETENTION_MS) is None


def test_a_marker_that_has_the_last_epoch_of_its_producer_stays_empty() -> None:
    fixture = Fixture()
    fixture.last_records[7] = LastRecord(-1, 2)
    waiting = fixture.apply(marker(ControlType.COMMIT, 12, epoch=2))
    assert waiting is not None
    header = emptied(fixture.apply(waiting, now_ms=NOW_MS + RETENTION_MS))
    assert header.is_control
    assert header.producer_epoch == 2
    again = fixture.apply(waiting, now_ms=NOW_MS + RETENTION_MS)
    assert again is not None
    assert emptied(fixture.apply(again)) == header
    fixture.last_records.clear()
    assert fixture.apply(again) is None


def test_the_marker_of_a_committed_transaction_stays_with_its_records() -> None:
    fixture = Fixture(a=10)
    committed = aborted_batch(10)
    assert fixture.apply(committed) == bytes(committed)
    commit = marker(ControlType.COMMIT, 12)
    assert fixture.apply(commit) == bytes(commit)


def test_a_damaged_batch_is_not_given_a_new_checksum() -> None:
    damaged = batch(("a", b"1"), ("b", b"2"))
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        Fixture(a=50).apply(damaged)
