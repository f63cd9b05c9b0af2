from hypothesis import given
from hypothesis import strategies as st
from tests.records.strategies import codecs, record_lists

from ottla.records.batch import TRANSACTIONAL_FLAG, TimestampType, assign, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.records.plain_records import build_plain_batch, read_plain_run

PLAIN = bytes(build_batch([Record(0, 5, b"key", b"value"), Record(1, 6, b"key2", None)]))
sizes = st.sampled_from([0, 1, 62, 63, 64, 65, 126, 127, 128, 129, 8190, 8191, 8192, 20_000])
SINGLE = bytes(build_batch([Record(0, 5, b"key", b"value")]))
damaged_bytes = st.dictionaries(st.integers(0, len(SINGLE) - 1), st.integers(0, 255), max_size=3)


def run_of(
    content: bytes | bytearray, start: int = 0, from_offset: int = -(2**64)
) -> tuple[list[Record], int]:
    records: list[Record] = []
    return records, read_plain_run(bytes(content), start, from_offset, records)


contents = st.none() | sizes.map(lambda size: b"x" * size) | st.binary(max_size=20)
pairs = st.lists(st.tuples(contents, contents), min_size=1, max_size=150)


@given(pairs, st.integers(0, 2**62))
def test_it_builds_what_the_builder_builds(
    pairs: list[tuple[bytes | None, bytes | None]], timestamp_ms: int
) -> None:
    records = [Record(timestamp=timestamp_ms, key=key, value=value) for key, value in pairs]
    assert build_plain_batch(pairs, timestamp_ms) == build_batch(records)
    assert build_plain_batch(
        pairs, timestamp_ms, attributes=TRANSACTIONAL_FLAG, producer_id=7, producer_epoch=2
    ) == build_batch(records, transactional=True, producer_id=7, producer_epoch=2)


@given(
    record_lists,
    codecs,
    st.sampled_from(TimestampType),
    st.booleans(),
    st.integers(0, 2**40),
)
def test_it_reads_what_the_decoder_reads_or_leaves_it(
    records: list[Record],
    compression: int,
    timestamp_type: TimestampType,
    transactional: bool,
    base_offset: int,
) -> None:
    batch = bytes(
        build_batch(
            records,
            base_offset=base_offset,
            compression=compression,
            timestamp_type=timestamp_type,
            transactional=transactional,
        )
    )
    read = run_of(b"before" + batch, 6)
    assert read in ((list(iterate_records(batch)), 6 + len(batch)), ([], 6))


@given(sizes.filter(lambda size: size < 64), st.none() | sizes.filter(lambda size: size < 8000))
def test_the_usual_sizes_are_read(key_size: int, value_size: int | None) -> None:
    record = Record(0, 5, b"k" * key_size, None if value_size is None else b"v" * value_size)
    batch = build_batch([record])
    assert run_of(batch) == ([record], len(batch))


@given(sizes, st.none() | sizes)
def test_sizes_of_any_length(key_size: int, value_size: int | None) -> None:
    record = Record(0, 5, b"k" * key_size, None if value_size is None else b"v" * value_size)
    batch = build_batch([record])
    assert run_of(batch) in (([record], len(batch)), ([], 0))


keys = st.binary(max_size=63)
values = st.none() | st.integers(0, 200).map(lambda size: b"v" * size)
usual_batches = st.lists(
    st.lists(st.tuples(keys, values), min_size=1, max_size=3), min_size=1, max_size=20
)


@given(usual_batches, st.integers(0, 40))
def test_a_run_of_batches_is_read_to_its_end(
    batches: list[list[tuple[bytes, bytes | None]]], from_offset: int
) -> None:
    content, offset = b"", 0
    expected: list[Record] = []
    for pairs in batches:
        batch = build_plain_batch(pairs, 7)
        assign(batch, 0, offset, 3)
        content += batch
        offset += len(pairs)
        if offset > from_offset:
            expected += iterate_records(bytes(batch))
    assert run_of(content, 0, from_offset) == (expected, len(content))


def test_it_stops_before_what_is_not_plain() -> None:
    transactional = build_batch([Record(timestamp=5)], producer_id=1, transactional=True)
    assert run_of(PLAIN + transactional + PLAIN) == (list(iterate_records(PLAIN)), len(PLAIN))


def test_it_stops_before_a_batch_that_is_not_whole() -> None:
    for size in (1, 30, len(PLAIN) - 1):
        assert run_of(PLAIN + PLAIN[:size]) == (list(iterate_records(PLAIN)), len(PLAIN))


def test_batches_before_the_offset_are_left_out() -> None:
    later = bytes(build_batch([Record(2, 7, b"key", b"later")], base_offset=2))
    assert run_of(PLAIN + later, from_offset=2) == (
        list(iterate_records(later)),
        len(PLAIN + later),
    )
    assert run_of(PLAIN + later, from_offset=1)[0][0].offset == 0


@given(st.sampled_from([PLAIN, SINGLE]), damaged_bytes)
def test_damage_is_left_to_the_decoder(content: bytes, damage: dict[int, int]) -> None:
    batch = bytearray(content)
    for position, byte in damage.items():
        batch[position] = byte
    records, end = run_of(batch)
    if end:
        assert end == read_header(batch).size
        assert records == list(iterate_records(bytes(batch)))
    else:
        assert records == []
