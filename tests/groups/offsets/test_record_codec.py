"""The fast codec of offsets against the general one."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups import record_codec as general
from ottla.groups.offsets.record_codec import decode_offset_commit, encode_offset_commit
from ottla.groups.offsets.records import OffsetCommitKey, OffsetCommitValue
from ottla.groups.record import Record

int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
texts = st.text(max_size=40) | st.sampled_from(["", "x" * 126, "x" * 127, "é" * 64])
keys = st.builds(OffsetCommitKey, group=texts, topic=texts, partition=int32)
values = st.builds(
    OffsetCommitValue,
    offset=int64,
    leader_epoch=int32,
    metadata=texts,
    commit_timestamp=int64,
    expire_timestamp=st.just(-1) | int64,
    topic_id=st.none() | st.uuids(),
)


def by_general_codec(key, value):
    version = value.version_written
    return (
        general._encode(OffsetCommitKey.RECORD_TYPE, OffsetCommitKey, key),
        general._encode(version, general._layout(OffsetCommitValue, version), value),
    )


@given(keys, values)
def test_bytes_are_those_of_the_general_codec(key, value):
    expected = by_general_codec(key, value)
    assert encode_offset_commit(key, value) in (expected, None)
    assert general.GroupRecordCodec().encode(Record(key, value)) == expected


@given(keys, values)
def test_what_was_written_is_read(key, value):
    encoded_key, encoded_value = by_general_codec(key, value)
    decoded = general.GroupRecordCodec().decode(encoded_key, encoded_value)
    general_value = general._decode_value(OffsetCommitValue, encoded_value)
    assert decoded == Record(key, general_value)
    fast = decode_offset_commit(encoded_key, encoded_value)
    assert fast in (decoded, None)
    assert decode_offset_commit(encoded_key, None) == Record(key, None)


@given(keys, values, st.data())
def test_damage_is_left_to_the_general_codec(key, value, data):
    encoded_key, encoded_value = by_general_codec(key, value)
    cut = data.draw(st.integers(0, len(encoded_value) - 1))
    assert decode_offset_commit(encoded_key, encoded_value[:cut]) is None
