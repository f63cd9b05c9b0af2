from uuid import UUID

import pytest
from hypothesis import given, settings
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32
from tests.controller.strategies import metadata_records

from ottla.controller.record_codec import MetadataRecordCodec
from ottla.controller.records import (
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
)

CODEC = MetadataRecordCodec()


@settings(max_examples=100)
@given(metadata_records)
def test_what_is_encoded_is_decoded(record: MetadataRecord) -> None:
    assert CODEC.decode(*CODEC.encode(record)) == record


def test_the_bytes_are_those_of_kafka() -> None:
    topic_id = UUID(int=7)
    assert CODEC.encode(TopicRecord(name=TopicName("orders"), topic_id=topic_id)) == (
        None,
        b"\x01\x02\x00" + b"\x07orders" + topic_id.bytes + b"\x00",
    )
    partition = PartitionRecord(
        partition_id=i32(1),
        topic_id=topic_id,
        replicas=(BrokerId(1), BrokerId(2)),
        isr=(BrokerId(1),),
        leader=BrokerId(1),
    )
    assert CODEC.encode(partition)[1] == (
        b"\x01\x03\x02"
        + b"\0\0\0\1"
        + topic_id.bytes
        + b"\x03\0\0\0\1\0\0\0\2"
        + b"\x02\0\0\0\1"
        + b"\x01\x01"
        + b"\0\0\0\1"
        + b"\0\0\0\0"
        + b"\0\0\0\0"
        + b"\x01"
        + b"\0"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "at least three bytes"),
        (b"\x01\x02", "at least three bytes"),
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x63\x00", "type 99"),
        (b"\x01\x02\x07", "TopicRecord has version 7, expected 0"),
        (b"\x01\x02\x00\x07ord", "metadata record of 7 bytes"),
        ((CODEC.encode(NoOpRecord())[1] or b"") + b"x", "different size"),
    ],
)
def test_bytes_that_are_no_record_are_refused(value: bytes | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CODEC.decode(None, value)


def test_a_record_with_a_key_is_refused() -> None:
    value = CODEC.encode(ConfigRecord(resource_type=i8(2), resource_name="a", name="b", value="c"))[
        1
    ]
    with pytest.raises(ValueError, match="no key"):
        CODEC.decode(b"key", value)
