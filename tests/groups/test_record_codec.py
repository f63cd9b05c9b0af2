"""The bytes are Kafka's: examples written out by hand from its message definitions."""

import uuid

import pytest

from ottla.groups.classic.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    group_metadata,
    group_tombstone,
)
from ottla.groups.consumer import records as consumer
from ottla.groups.modern import records as modern
from ottla.groups.offsets.records import (
    OffsetCommitRecord,
    OffsetCommitValue,
    offset_tombstone,
)
from ottla.groups.record_codec import GroupRecordCodec
from ottla.groups.share import records as share
from ottla.groups.streams import records as streams
from ottla.machine.record import Record, UnknownRecord
from ottla.protocol.topics import TopicPartition

TOPIC_ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")

codec = GroupRecordCodec()


def test_offset_commit_bytes() -> None:
    value = OffsetCommitValue(
        offset=5, leader_epoch=2, metadata="m", commit_timestamp=7, topic_id=TOPIC_ID
    )
    record = OffsetCommitRecord("g", TopicPartition("t", 3), value)

    assert codec.encode(record) == (
        bytes.fromhex("0001 0001 67 0001 74 00000003"),
        bytes.fromhex(
            "0004 0000000000000005 00000002 02 6d 0000000000000007"
            "01 00 10 00112233445566778899aabbccddeeff"
        ),
    )


def test_offset_commit_without_topic_id_has_no_tagged_field() -> None:
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=7)
    encoded = codec.encode(OffsetCommitRecord("g", TopicPartition("t", 0), value))[1]

    assert encoded == bytes.fromhex("0004 0000000000000005 ffffffff 01 0000000000000007 00")


def test_an_offset_with_its_own_expiry_is_written_as_version_1() -> None:
    value = OffsetCommitValue(offset=5, metadata="", commit_timestamp=7, expire_timestamp=9)
    encoded = codec.encode(OffsetCommitRecord("g", TopicPartition("t", 0), value))[1]

    assert encoded == bytes.fromhex("0001 0000000000000005 0000 0000000000000007 0000000000000009")


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (
            "0000 0000000000000005 0001 6d 0000000000000007",
            OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7),
        ),
        (
            "0001 0000000000000005 0001 6d 0000000000000007 0000000000000009",
            OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7, expire_timestamp=9),
        ),
        (
            "0003 0000000000000005 00000002 0001 6d 0000000000000007",
            OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=7),
        ),
    ],
)
def test_older_offset_commits_are_read(encoded: str, value: OffsetCommitValue) -> None:
    key = bytes.fromhex("0000 0001 67 0001 74 00000003")

    assert codec.decode(key, bytes.fromhex(encoded)) == OffsetCommitRecord(
        "g", TopicPartition("t", 3), value
    )


def test_group_metadata_bytes() -> None:
    member = MemberMetadata(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout=1,
        session_timeout=2,
        subscription=b"s",
        assignment=b"a",
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader="m",
        current_state_timestamp=9,
        members=(member,),
    )

    assert codec.encode(group_metadata("g", value)) == (
        bytes.fromhex("0002 0001 67"),
        bytes.fromhex("0003 0008 636f6e73756d6572 00000004 0005 72616e6765 0001 6d")
        + bytes.fromhex("0000000000000009 00000001 0001 6d ffff 0001 63 0002 2f68")
        + bytes.fromhex("00000001 00000002 00000001 73 00000001 61"),
    )


def test_oldest_group_metadata_is_read() -> None:
    encoded = bytes.fromhex(
        "0000 0001 78 00000004 ffff ffff 000000010001 6d 0001 63 0001 68 00000002 00000000 00000000"
    )

    assert codec.decode(bytes.fromhex("0002 0001 67"), encoded) == group_metadata(
        "g",
        GroupMetadataValue(
            protocol_type="x",
            generation=4,
            protocol=None,
            leader=None,
            members=(
                MemberMetadata(
                    member_id="m",
                    client_id="c",
                    client_host="h",
                    session_timeout=2,
                    subscription=b"",
                    assignment=b"",
                ),
            ),
        ),
    )


def test_present_classic_member_metadata_is_marked() -> None:
    value = consumer.ConsumerGroupMemberMetadataValue(
        client_id="c",
        client_host="h",
        subscribed_topic_names=("t",),
        rebalance_timeout_ms=1,
        classic=consumer.ClassicMemberMetadata(
            session_timeout_ms=2,
            supported_protocols=(consumer.ClassicProtocol(name="r", metadata=b"x"),),
        ),
    )
    record = Record(consumer.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), value)
    key, encoded = codec.encode(record)

    assert key == bytes.fromhex("0005 0001 67 0001 6d")
    assert encoded == bytes.fromhex(
        "0000 00 00 0263 0268 02 0274 00 00000001 0001 00 0c 01 00000002 02 0272 0278 00 00"
    )
    assert codec.decode(key, encoded) == record


@pytest.mark.parametrize(
    "record",
    [
        offset_tombstone("g", TopicPartition("t", 1)),
        group_tombstone("g"),
        Record(
            consumer.ConsumerGroupMetadataKey(group_id="g"),
            consumer.ConsumerGroupMetadataValue(epoch=3),
        ),
        Record(
            consumer.ConsumerGroupPartitionMetadataKey(group_id="g"),
            modern.PartitionMetadataValue(
                topics=(
                    modern.TopicMetadata(
                        topic_id=TOPIC_ID,
                        topic_name="t",
                        num_partitions=2,
                        partition_metadata=(
                            modern.PartitionMetadata(partition=0, racks=("a", "b")),
                        ),
                    ),
                )
            ),
        ),
        Record(
            consumer.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
            consumer.ConsumerGroupMemberMetadataValue(
                instance_id="i", client_id="c", client_host="h", subscribed_topic_regex="a.*"
            ),
        ),
        Record(
            consumer.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
            modern.TargetAssignmentMetadataValue(assignment_epoch=3, assignment_timestamp=7),
        ),
        Record(
            consumer.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m"),
            modern.TargetAssignmentMemberValue(
                topic_partitions=(modern.TopicPartitions(topic_id=TOPIC_ID, partitions=(0, 2)),)
            ),
        ),
        Record(
            consumer.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
            consumer.ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=4,
                previous_member_epoch=3,
                state=1,
                assigned_partitions=(
                    consumer.CurrentTopicPartitions(
                        topic_id=TOPIC_ID, partitions=(0, 1), assignment_epochs=(3, 4)
                    ),
                ),
                partitions_pending_revocation=(
                    consumer.CurrentTopicPartitions(topic_id=TOPIC_ID, partitions=(2,)),
                ),
            ),
        ),
        Record(
            consumer.ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="a.*"),
            consumer.ConsumerGroupRegularExpressionValue(topics=("ab",), version=1, timestamp=2),
        ),
    ],
)
def test_round_trip(record: Record) -> None:
    assert codec.decode(*codec.encode(record)) == record


def test_bytes_of_a_current_assignment_with_epochs() -> None:
    topic = "00112233445566778899aabbccddeeff"
    record = Record(
        consumer.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
        consumer.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=4,
            previous_member_epoch=3,
            state=0,
            assigned_partitions=(
                consumer.CurrentTopicPartitions(
                    topic_id=uuid.UUID(topic), partitions=(5,), assignment_epochs=(2,)
                ),
            ),
            partitions_pending_revocation=(),
        ),
    )
    key, value = codec.encode(record)
    assert value == bytes.fromhex(
        f"0000 00000004 00000003 00 02 {topic} 02 00000005 01 00 05 02 00000002 01 00"
    )
    assert codec.decode(key, value) == record


def test_flexible_group_metadata_of_a_newer_kafka_is_read() -> None:
    encoded = bytes.fromhex("0004 0278 00000004 00 00 ffffffffffffffff 01 00")

    assert codec.decode(bytes.fromhex("0002 0001 67"), encoded) == Record(
        GroupMetadataKey(group="g"),
        GroupMetadataValue(protocol_type="x", generation=4, protocol=None, leader=None, members=()),
    )


def test_an_unknown_family_is_passed_over() -> None:
    assert codec.decode(bytes.fromhex("0063 0001 67"), b"\x00\x00") == UnknownRecord(99)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00", b""),
        (b"\x00\x01", None),
        (codec.encode(offset_tombstone("g", TopicPartition("t", 1)))[0], b"\x00\x04\x00"),
        (codec.encode(offset_tombstone("g", TopicPartition("t", 1)))[0], b"\x00\x09\x00"),
    ],
)
def test_malformed_records_are_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(ValueError, match=r"."):
        codec.decode(key, value)


def test_the_first_name_of_the_offset_family() -> None:
    decoded = codec.decode(bytes.fromhex("0000 0001 67 0001 74 00000003"), None)

    assert decoded == offset_tombstone("g", TopicPartition("t", 3))


def test_share_group_bytes() -> None:
    metadata = Record(
        share.ShareGroupMetadataKey(group_id="g"),
        modern.EpochValue(epoch=2, metadata_hash=3),
    )
    current = Record(
        share.ShareGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
        share.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=2,
            previous_member_epoch=1,
            assigned_partitions=(modern.TopicPartitions(topic_id=TOPIC_ID, partitions=(5,)),),
        ),
    )

    assert codec.encode(metadata) == (
        bytes.fromhex("000b 0001 67"),
        bytes.fromhex("0000 00000002 0000000000000003 00"),
    )
    assert codec.encode(current) == (
        bytes.fromhex("000e 0001 67 0001 6d"),
        bytes.fromhex(
            "0000 00000002 00000001 00 02 00112233445566778899aabbccddeeff 02 00000005 00 00"
        ),
    )
    assert codec.decode(*codec.encode(current)) == current


def test_a_streams_member_and_its_epoch() -> None:
    key = streams.StreamsGroupMemberMetadataKey(group_id="g", member_id="m")
    value = streams.StreamsGroupMemberMetadataValue(
        client_id="c",
        client_host="h",
        rebalance_timeout_ms=5,
        topology_epoch=1,
        process_id="p",
        user_endpoint=streams.Endpoint(host="e", port=8080),
        client_tags=(streams.KeyValue(key="k", value="v"),),
    )
    encoded = codec.encode(Record(key, value))
    assert encoded == (
        bytes.fromhex("0013 0001 67 0001 6d"),
        bytes.fromhex(
            "0000 00 00 02 63 02 68 00000005 00000001 02 70 01 02 65 1f90 00 02 02 6b 02 76 00 00"
        ),
    )
    assert codec.decode(*encoded) == Record(key, value)


def test_the_epoch_of_a_streams_group() -> None:
    key = streams.StreamsGroupMetadataKey(group_id="g")
    value = streams.StreamsGroupMetadataValue(
        epoch=3,
        metadata_hash=4,
        validated_topology_epoch=0,
        last_assignment_configs=(streams.KeyValue(key="k", value="v"),),
    )
    encoded = codec.encode(Record(key, value))
    assert encoded == (
        bytes.fromhex("0011 0001 67"),
        bytes.fromhex("0000 00000003 0000000000000004 02 00 04 00000000 01 06 02 02 6b 02 76 00"),
    )
    assert codec.decode(*encoded) == Record(key, value)
