from dataclasses import replace

import pytest

from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.producer_entry import AppendedBatch, ProducerEntry
from ottla.storage.producer_snapshot import (
    CorruptSnapshot,
    decode_snapshot,
    encode_snapshot,
    snapshot_offsets,
    snapshot_path,
)

TIMESTAMP = 1_700_000_000_000
ENTRY = ProducerEntry(
    producer_id=7,
    producer_epoch=2,
    next_sequence=10,
    batches=[AppendedBatch(5, 9, 96, 100, TIMESTAMP)],
    last_timestamp=TIMESTAMP,
    coordinator_epoch=3,
)
GOLDEN = bytes.fromhex(
    "0001 7d4c0575 00000001"
    "0000000000000007 0002 00000009 0000000000000064 00000004"
    "0000018bcfe56800 00000003 ffffffffffffffff"
)


def test_the_file_has_kafkas_bytes() -> None:
    assert encode_snapshot([ENTRY]) == GOLDEN
    assert decode_snapshot(GOLDEN) == [ENTRY]
    assert decode_snapshot(encode_snapshot([])) == []
    many = [replace(ENTRY, producer_id=producer_id) for producer_id in range(50)]
    assert decode_snapshot(encode_snapshot(many)) == many


def test_the_batches_before_the_last_one_stand_behind_kafkas_bytes() -> None:
    earlier = [AppendedBatch(number, number, 90 + number, 90 + number, 5) for number in range(4)]
    several = replace(ENTRY, producer_id=8, batches=[*earlier, *ENTRY.batches])
    entries = [ENTRY, several, replace(ENTRY, producer_id=9)]

    data = encode_snapshot(entries)

    assert decode_snapshot(data) == entries
    plain = encode_snapshot([replace(entry, batches=ENTRY.batches) for entry in entries])
    assert data[6:].startswith(plain[6:])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes"),
        (GOLDEN[:9], "9 bytes"),
        (b"\0\2" + GOLDEN[2:], "version 2"),
        (GOLDEN[:-1], "checksum"),
        (GOLDEN + b"\0", "checksum"),
        (GOLDEN[:20] + b"\xff" + GOLDEN[21:], "checksum"),
        (bytes.fromhex("0001 a95c3b30 00000002"), "2 entries"),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptSnapshot, match=reason):
        decode_snapshot(data)


def test_the_snapshots_of_a_directory() -> None:
    filesystem = FaultyFilesystem()
    filesystem.make_directory("/log")
    names = ["00000000000000000010.log", "7.snapshot", "00000000000000000003.snapshot.tmp"]
    paths = [f"/log/{name}" for name in names]
    for path in [snapshot_path("/log", 20), snapshot_path("/log", 3), *paths]:
        filesystem.write_atomically(path, b"")
    assert filesystem.exists("/log/00000000000000000020.snapshot")
    assert snapshot_offsets(filesystem.list("/log")) == [3, 20]
