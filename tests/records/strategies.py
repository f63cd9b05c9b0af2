"""Records and batches for property tests."""

from hypothesis import strategies as st

from ottla.records.builder import NO_OFFSET, Record

timestamps = st.integers(0, 2**45)
nullable_bytes = st.none() | st.binary(max_size=80)
headers = st.lists(st.tuples(st.text(max_size=8), nullable_bytes), max_size=3).map(tuple)
records = st.builds(
    Record,
    offset=st.just(NO_OFFSET),
    timestamp=timestamps,
    key=nullable_bytes,
    value=nullable_bytes,
    headers=headers,
)
record_lists = st.lists(records, min_size=1, max_size=20)
codecs = st.integers(0, 4)


def with_offsets(items: list[Record], base_offset: int) -> list[Record]:
    return [record._replace(offset=base_offset + index) for index, record in enumerate(items)]
