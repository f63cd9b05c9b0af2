from hypothesis import given
from hypothesis import strategies as st
from tests.records.strategies import codecs, record_lists

from ottla.records.batch import TimestampType, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.records.errors import RecordError
from ottla.records.plain_records import read_records

sizes = st.sampled_from([0, 1, 62, 63, 64, 65, 126, 127, 128, 129, 8190, 8191, 8192, 20_000])


@given(record_lists, codecs, st.sampled_from(TimestampType), st.integers(0, 2**40))
def test_it_reads_what_the_decoder_reads(records, compression, timestamp_type, base_offset):
    batch = b"before" + build_batch(
        records, base_offset=base_offset, compression=compression, timestamp_type=timestamp_type
    )
    header = read_header(batch, 6)
    assert read_records(batch, 6, header) == list(iterate_records(batch, 6))


@given(sizes, st.none() | sizes)
def test_sizes_of_any_length(key_size, value_size):
    record = Record(0, 5, b"k" * key_size, None if value_size is None else b"v" * value_size)
    batch = bytes(build_batch([record]))
    assert read_records(batch, 0, read_header(batch)) == [record]


@given(st.data())
def test_damage_is_what_the_decoder_says(data):
    batch = build_batch([Record(0, 5, b"key", b"value"), Record(1, 6, b"key2", None)])
    position = data.draw(st.integers(61, len(batch) - 1))
    batch[position] = data.draw(st.integers(0, 255))
    damaged = bytes(batch)

    def outcome(read):
        try:
            return read()
        except RecordError as error:
            return type(error), str(error)

    assert outcome(lambda: read_records(damaged, 0, read_header(damaged))) == outcome(
        lambda: list(iterate_records(damaged))
    )
