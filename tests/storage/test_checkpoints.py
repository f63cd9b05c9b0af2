from uuid import UUID

import pytest

from ottla.protocol.topics import TopicPartition
from ottla.storage.checkpoints import (
    MetaProperties,
    read_clean_shutdown,
    read_meta_properties,
    read_offsets,
    read_partition_metadata,
    remove_clean_shutdown,
    write_clean_shutdown,
    write_meta_properties,
    write_offsets,
    write_partition_metadata,
)
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.text_checkpoint import CorruptCheckpoint

OFFSETS = {TopicPartition("orders", 0): 5, TopicPartition("orders", 11): 2**40}


@pytest.fixture
def filesystem() -> FaultyFilesystem:
    filesystem = FaultyFilesystem()
    filesystem.make_directory("/data")
    return filesystem


def test_offsets_have_kafkas_text(filesystem: FaultyFilesystem) -> None:
    write_offsets(filesystem, "/data/offsets", OFFSETS)
    lines = filesystem.read_bytes("/data/offsets").split(b"\n")
    assert [line.rstrip() for line in lines] == [
        *(b"0", b"2", b"orders 0 5", b"orders 11 1099511627776", b"")
    ]
    assert lines[:3] == [b"0", b"2", b"orders 0 5"]
    assert read_offsets(filesystem, "/data/offsets") == OFFSETS


def test_a_file_that_kafka_wrote_has_no_checksum(filesystem: FaultyFilesystem) -> None:
    text = b"0\n2\norders 0 5\norders 11 1099511627776\n"
    filesystem.write_atomically("/data/offsets", text)
    assert read_offsets(filesystem, "/data/offsets") == OFFSETS


def test_a_flipped_bit_of_offsets_is_noticed_or_changes_nothing(
    filesystem: FaultyFilesystem,
) -> None:
    path = "/data/offsets"
    write_offsets(filesystem, path, OFFSETS)
    for position in range(filesystem.size(path)):
        for bit in range(8):
            filesystem.flip_bit(path, position, bit)
            try:
                assert read_offsets(filesystem, path) == OFFSETS
            except CorruptCheckpoint:
                pass
            filesystem.flip_bit(path, position, bit)


def test_no_file_has_no_offsets(filesystem: FaultyFilesystem) -> None:
    assert read_offsets(filesystem, "/data/offsets") == {}
    write_offsets(filesystem, "/data/offsets", {})
    assert filesystem.read_bytes("/data/offsets") == b"0\n0\n"
    assert read_offsets(filesystem, "/data/offsets") == {}


@pytest.mark.parametrize("line", [b"orders 5", b"orders zero 5", b"orders 0 5 7", b""])
def test_a_bad_line_is_refused(filesystem: FaultyFilesystem, line: bytes) -> None:
    filesystem.write_atomically("/data/offsets", b"0\n1\n" + line + b"\n")
    with pytest.raises(CorruptCheckpoint, match="no offset entry"):
        read_offsets(filesystem, "/data/offsets")


def test_meta_properties(filesystem: FaultyFilesystem) -> None:
    assert read_meta_properties(filesystem, "/data") is None
    meta = MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, "WGX1yWxjTEuwNvAV2WSlvA")
    write_meta_properties(filesystem, "/data", meta)
    assert filesystem.read_bytes("/data/meta.properties") == (
        b"#crc32c=a10c65ff\ncluster.id=4L6g3nShT-eMCtK--X86sw\ndirectory.id=WGX1yWxjTEuwNvAV2WSlvA\n"
        b"node.id=3\nversion=1\n"
    )
    assert read_meta_properties(filesystem, "/data") == meta


def test_a_flipped_bit_of_meta_properties_is_refused_or_changes_nothing(
    filesystem: FaultyFilesystem,
) -> None:
    meta = MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, "WGX1yWxjTEuwNvAV2WSlvA")
    write_meta_properties(filesystem, "/data", meta)
    refused = 0
    for bit in range(8 * filesystem.size("/data/meta.properties")):
        filesystem.flip_bit("/data/meta.properties", *divmod(bit, 8))
        try:
            assert read_meta_properties(filesystem, "/data") == meta
        except CorruptCheckpoint:
            refused += 1
        filesystem.flip_bit("/data/meta.properties", *divmod(bit, 8))
    assert refused > 0


def test_meta_properties_written_by_kafka(filesystem: FaultyFilesystem) -> None:
    filesystem.write_atomically(
        "/data/meta.properties",
        b"#\n#Sat Nov 15 10:00:00 UTC 2025\nnode.id=1\nversion=1\ncluster.id=abc\n",
    )
    assert read_meta_properties(filesystem, "/data") == MetaProperties("abc", 1, "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no version"),
        (b"version=0\nbroker.id=1\n", "version 0"),
        (b"version=1\nnode.id=1\n", r"no cluster\.id"),
        (b"version=1\nnode.id=one\ncluster.id=x\n", "'one'"),
    ],
)
def test_bad_meta_properties_are_refused(
    filesystem: FaultyFilesystem, content: bytes, reason: str
) -> None:
    filesystem.write_atomically("/data/meta.properties", content)
    with pytest.raises(CorruptCheckpoint, match=reason):
        read_meta_properties(filesystem, "/data")


def test_a_clean_shutdown_is_marked_until_it_is_removed(filesystem: FaultyFilesystem) -> None:
    assert read_clean_shutdown(filesystem, "/data") is None
    write_clean_shutdown(filesystem, "/data", 12)
    assert filesystem.read_bytes("/data/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":12}'
    assert read_clean_shutdown(filesystem, "/data") == 12
    filesystem.write_atomically("/data/.kafka_cleanshutdown", b"")
    assert read_clean_shutdown(filesystem, "/data") == -1
    remove_clean_shutdown(filesystem, "/data")
    remove_clean_shutdown(filesystem, "/data")
    filesystem.crash()
    assert read_clean_shutdown(filesystem, "/data") is None


def test_partition_metadata(filesystem: FaultyFilesystem) -> None:
    assert read_partition_metadata(filesystem, "/data") is None
    topic_id = UUID("e0bea0de-7485-4fe7-8c0a-d2bef97f3ab3")
    write_partition_metadata(filesystem, "/data", topic_id)
    assert filesystem.read_bytes("/data/partition.metadata") == (
        b"version: 0\ntopic_id: 4L6g3nSFT-eMCtK--X86sw\ncrc32c: 737e1d01"
    )
    assert read_partition_metadata(filesystem, "/data") == topic_id
    filesystem.flip_bit("/data/partition.metadata", 25)
    with pytest.raises(CorruptCheckpoint, match="checksum"):
        read_partition_metadata(filesystem, "/data")
    kafkas = b"version: 0\ntopic_id: 4L6g3nSFT-eMCtK--X86sw"
    filesystem.write_atomically("/data/partition.metadata", kafkas)
    assert read_partition_metadata(filesystem, "/data") == topic_id
    filesystem.write_atomically("/data/partition.metadata", b"version: 0\n")
    with pytest.raises(CorruptCheckpoint, match="no topic id"):
        read_partition_metadata(filesystem, "/data")
