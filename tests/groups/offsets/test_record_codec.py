"""The offset codec, compared with the general one, which has each version's layout."""

import uuid
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies._internal.core import DataObject
from kio.static.constants import EntityType

from ottla.groups.offsets.record_codec import decode_offset_commit, encode_offset_commit
from ottla.groups.offsets.records import (
    OffsetCommitRecord,
    OffsetCommitValue,
    offset_tombstone,
)
from ottla.machine import record_codec as general
from ottla.protocol.entities import wire
from ottla.protocol.topics import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLayout:
    __type__ = EntityType.data
    __version__ = 0
    __flexible__ = False
    group: str = field(metadata=wire("string"))
    topic: str = field(metadata=wire("string"))
    partition: int = field(metadata=wire("int32"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLayout:
    FLEXIBLE_SINCE = 4
    offset: int = field(metadata=wire("int64"))
    leader_epoch: int = field(metadata=wire("int32", since=3), default=-1)
    metadata: str = field(metadata=wire("string"))
    commit_timestamp: int = field(metadata=wire("int64"))
    expire_timestamp: int = field(metadata=wire("int64", since=1, until=1), default=-1)
    topic_id: uuid.UUID | None = field(metadata=wire("uuid", since=4, tag=0), default=None)


int64 = st.integers(-(2**63), 2**63 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
texts = st.text(max_size=40) | st.sampled_from(["", "x" * 126, "x" * 127, "é" * 64, "x" * 600])
topic_partitions = st.builds(TopicPartition, topic=texts, partition=int32)
values = st.builds(
    OffsetCommitValue,
    offset=int64,
    leader_epoch=int32,
    metadata=texts,
    commit_timestamp=int64,
    expire_timestamp=st.just(-1) | int64,
    topic_id=st.none() | st.uuids(),
)
records = st.builds(
    OffsetCommitRecord, group_id=texts, topic_partition=topic_partitions, value=values
)


def by_general_codec(
    record: OffsetCommitRecord, version: int, family: int = 1
) -> tuple[bytes, bytes]:
    key = KeyLayout(
        group=record.group_id,
        topic=record.topic_partition.topic,
        partition=record.topic_partition.partition,
    )
    layout = general._layout(ValueLayout, version)
    assert record.value is not None
    return (
        general._encode(family, KeyLayout, key),
        general._encode(version, layout, ValueLayout(**record.value._asdict())),
    )


def in_version(value: OffsetCommitValue, version: int) -> OffsetCommitValue:
    """A value as it survives encoding in this version."""
    return value._replace(
        leader_epoch=value.leader_epoch if version >= 3 else -1,
        expire_timestamp=value.expire_timestamp if version == 1 else -1,
        topic_id=value.topic_id if version >= 4 else None,
    )


@given(records)
def test_bytes_are_those_of_the_general_codec(record: OffsetCommitRecord) -> None:
    assert record.value is not None
    version = 4 if record.value.expire_timestamp < 0 else 1
    assert encode_offset_commit(record) == by_general_codec(record, version)


@given(records, st.sampled_from([0, 1]))
def test_every_version_is_read(record: OffsetCommitRecord, family: int) -> None:
    assert record.value is not None
    for version in range(5):
        read = decode_offset_commit(*by_general_codec(record, version, family))
        assert read == record._replace(value=in_version(record.value, version))


@given(records)
def test_a_tombstone_is_read(record: OffsetCommitRecord) -> None:
    tombstone = offset_tombstone(record.group_id, record.topic_partition)
    key, value = encode_offset_commit(tombstone)
    assert value is None
    assert decode_offset_commit(key, None) == tombstone


def test_unknown_tagged_fields_are_skipped() -> None:
    record = OffsetCommitRecord("g", TopicPartition("t", 1), OffsetCommitValue(5, "", 7))
    key, value = encode_offset_commit(record)
    assert value is not None
    assert decode_offset_commit(key, value[:-1] + b"\x01\x09\x02ab") == record


@given(records, st.integers(0, 4), st.data())
def test_a_value_that_is_cut_short_is_refused(
    record: OffsetCommitRecord, version: int, data: DataObject
) -> None:
    key, value = by_general_codec(record, version)
    size = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(ValueError, match="not the record of an offset"):
        decode_offset_commit(key, value[:size])


@given(records, st.data())
def test_a_key_that_is_cut_short_is_refused(record: OffsetCommitRecord, data: DataObject) -> None:
    key, value = by_general_codec(record, 4)
    size = data.draw(st.integers(0, len(key) - 1))
    with pytest.raises(ValueError, match="not the record of an offset"):
        decode_offset_commit(key[:size], value)


@pytest.mark.parametrize(
    "value",
    [
        "0005" + "00" * 24,
        "ffff" + "00" * 24,
        "0004 0000000000000005 00000002 01 0000000000000007 01 00 02 1234",
        "0003 0000000000000005 00000002 ffff 0000000000000007",
    ],
)
def test_a_value_that_no_version_has_is_refused(value: str) -> None:
    key, _ = encode_offset_commit(offset_tombstone("g", TopicPartition("t", 1)))
    with pytest.raises(ValueError, match="not the record of an offset"):
        decode_offset_commit(key, bytes.fromhex(value))


@pytest.mark.parametrize(
    "key",
    [
        "0001 ffff 0001 74 00000003",
        "0001 0001 67 ffff 00000003",
        "0001 0001 67 0001 74 00000003 00",
        "0001 7fff 67 0001 74 00000003",
    ],
)
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="not the record of an offset"):
        decode_offset_commit(bytes.fromhex(key), None)
