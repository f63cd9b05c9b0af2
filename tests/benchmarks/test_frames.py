"""kio reads the frames that the raw generators send."""

import struct

from benchmarks.loads import frames
from crc32c import crc32c
from kio.schema.fetch.v12.request import FetchRequest
from kio.schema.offset_commit.v9.request import OffsetCommitRequest
from kio.schema.produce.v9.request import ProduceRequest
from kio.serial import entity_reader

HEADER_SIZE = 4 + 2 + 2 + 4 + 2 + len(frames.CLIENT_ID) + 1


def test_a_produce_frame_carries_the_batch() -> None:
    batch = frames.build_batch(3, 200)
    frame = frames.produce_frame("orders", 2, batch, acks=-1)
    request, size = entity_reader(ProduceRequest)(frame, HEADER_SIZE)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    assert HEADER_SIZE + size == len(frame)
    assert request.acks == -1
    assert request.topic_data[0].name == "orders"
    assert request.topic_data[0].partition_data[0].index == 2
    assert request.topic_data[0].partition_data[0].records == batch


def test_a_batch_has_its_length_and_checksum() -> None:
    batch = frames.build_batch(1, 100)
    assert struct.unpack_from(">i", batch, 8)[0] == len(batch) - 12
    assert struct.unpack_from(">I", batch, 17)[0] == crc32c(batch[21:])


def test_a_fetch_frame_asks_for_the_offset() -> None:
    frame = frames.fetch_frame("orders", 1, 42, 1 << 20)
    request, size = entity_reader(FetchRequest)(frame, HEADER_SIZE)
    assert HEADER_SIZE + size == len(frame)
    asked = request.topics[0].partitions[0]
    assert (asked.partition, asked.fetch_offset, asked.partition_max_bytes) == (1, 42, 1 << 20)


def test_a_batch_that_is_cut_does_not_count() -> None:
    batch = frames.build_batch(10, 50)
    records = memoryview(batch + batch[: len(batch) // 2])
    assert frames.walk_batches(records) == (10, len(batch), 10)


def test_varints_round_trip() -> None:
    for value in (0, 127, 128, 300, 1 << 20):
        encoded = memoryview(frames.unsigned_varint(value))
        assert frames.read_unsigned_varint(encoded, 0) == (value, len(encoded))


def test_a_commit_frame_names_no_member() -> None:
    frame = frames.commit_frame("billing", "orders", 3, 42)
    request, size = entity_reader(OffsetCommitRequest)(frame, HEADER_SIZE)
    assert HEADER_SIZE + size == len(frame)
    assert (request.group_id, request.member_id) == ("billing", "")
    assert request.generation_id_or_member_epoch == -1
    committed = request.topics[0].partitions[0]
    assert (request.topics[0].name, committed.partition_index) == ("orders", 3)
    assert committed.committed_offset == 42
