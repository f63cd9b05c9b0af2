import json
import struct
from pathlib import Path

import pytest
from tests.cli.conftest import Ottla

from ottla.controller.record_codec import MetadataRecordCodec
from ottla.controller.records import NoOpRecord
from ottla.records.builder import Record, build_batch
from ottla.records.compression import Compression
from ottla.records.decoder import ControlType, Marker, build_marker

NAME = "00000000000000000000"
TIME_MS = 1700000000123


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    return directory


def batches() -> tuple[bytes, bytes]:
    first = build_batch(
        [
            Record(timestamp=TIME_MS, key=b"k", value=b"two\nlines", headers=(("h", b"1"),)),
            Record(timestamp=TIME_MS, key=b"k", value=None),
        ],
        compression=Compression.ZSTD,
        leader_epoch=3,
    )
    second = build_batch(
        [Record(timestamp=TIME_MS, value=b"\xff")],
        base_offset=2,
        producer_id=9,
        producer_epoch=1,
        base_sequence=4,
        transactional=True,
    )
    return bytes(first), bytes(second)


def test_batches_of_a_directory(ottla: Ottla, partition: Path) -> None:
    first, second = batches()
    (partition / f"{NAME}.log").write_bytes(first + second)
    outcome = ottla("dump", partition)
    assert outcome.exit_code == 0
    assert outcome.output.splitlines() == [
        f"base offset 0  last offset 1  position 0  size {len(first)}  count 2  compression zstd"
        "  leader epoch 3  create time 2023-11-14T22:13:20.123Z",
        f"base offset 2  last offset 2  position {len(first)}  size {len(second)}  count 1"
        "  compression none  leader epoch -1  create time 2023-11-14T22:13:20.123Z"
        "  producer id 9  producer epoch 1  base sequence 4  transactional",
    ]


def test_records_with_deep(ottla: Ottla, partition: Path) -> None:
    (partition / f"{NAME}.log").write_bytes(batches()[0])
    outcome = ottla("dump", partition / f"{NAME}.log", "--deep")
    assert outcome.output.splitlines()[1:] == [
        '  offset 0  timestamp 2023-11-14T22:13:20.123Z  key k  value "two\\nlines"'
        '  headers [["h", "1"]]',
        "  offset 1  timestamp 2023-11-14T22:13:20.123Z  key k  value null",
    ]


def test_json_is_one_batch_per_line(ottla: Ottla, partition: Path) -> None:
    first, second = batches()
    (partition / f"{NAME}.log").write_bytes(first + second)
    outcome = ottla("dump", partition, "--deep", "--json")
    documents = [json.loads(line) for line in outcome.output.splitlines()]
    assert [document["base_offset"] for document in documents] == [0, 2]
    assert documents[1]["records"][0]["value"] == {"base64": "/w=="}


def test_a_transaction_marker(ottla: Ottla, partition: Path) -> None:
    marker = build_marker(
        Marker(ControlType.ABORT, 0),
        timestamp_ms=TIME_MS,
        base_offset=5,
        producer_id=9,
        producer_epoch=1,
    )
    (partition / f"{NAME}.log").write_bytes(marker)
    outcome = ottla("dump", partition, "--deep")
    assert outcome.output.splitlines()[1].endswith("control abort")


def test_metadata_records(ottla: Ottla, tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    _, value = MetadataRecordCodec().encode(NoOpRecord())
    records = [Record(value=value), Record(value=b"\x01\x63\x00")]
    (directory / f"{NAME}.log").write_bytes(build_batch(records))
    outcome = ottla("dump", directory, "--deep")
    assert '{"type": "NoOpRecord"}' in outcome.output
    assert "unknown metadata record type 99" in outcome.output


def test_a_torn_tail_is_reported_after_what_is_whole(ottla: Ottla, partition: Path) -> None:
    first, second = batches()
    (partition / f"{NAME}.log").write_bytes(first + second[:-1])
    outcome = ottla("dump", partition)
    assert outcome.exit_code == 1
    assert len(outcome.output.splitlines()) == 1
    assert outcome.errors == (
        f"ottla: {NAME}.log: torn tail: the batch of offset 2 at position {len(first)} has "
        f"{len(second) - 1} of {len(second)} bytes; recovery truncates it\n"
    )


def test_a_tail_shorter_than_a_header_is_torn_too(ottla: Ottla, partition: Path) -> None:
    first, second = batches()
    (partition / f"{NAME}.log").write_bytes(first + second[:20])
    outcome = ottla("dump", partition)
    assert outcome.exit_code == 1
    assert "torn tail: 20 bytes" in outcome.errors


def test_a_bad_crc_is_reported_and_the_next_batch_still_shown(
    ottla: Ottla, partition: Path
) -> None:
    first, second = batches()
    damaged = bytearray(first + second)
    damaged[len(first) - 1] ^= 1
    (partition / f"{NAME}.log").write_bytes(damaged)
    outcome = ottla("dump", partition, "--deep")
    assert outcome.exit_code == 1
    assert "bad CRC at position 0" in outcome.errors
    lines = outcome.output.splitlines()
    assert lines[0].endswith("problem bad CRC")
    assert lines[1].startswith("base offset 2")


@pytest.mark.parametrize("rest", [bytes(100), b"\x55" * 100])
def test_bytes_that_are_no_batch(ottla: Ottla, partition: Path, rest: bytes) -> None:
    (partition / f"{NAME}.log").write_bytes(rest)
    outcome = ottla("dump", partition)
    assert outcome.exit_code == 1
    assert "100" in outcome.errors
    assert outcome.errors.count("\n") == 1


def test_an_empty_segment(ottla: Ottla, partition: Path) -> None:
    (partition / f"{NAME}.log").touch()
    assert ottla("dump", partition) == (0, "", "")


def test_an_offset_index_is_checked_against_its_segment(ottla: Ottla, partition: Path) -> None:
    first, second = batches()
    (partition / f"{NAME}.log").write_bytes(first + second)
    entries = struct.pack(">iiii", 1, 0, 2, len(first) + 1)
    (partition / f"{NAME}.index").write_bytes(entries)
    outcome = ottla("dump", partition / f"{NAME}.index")
    assert outcome.exit_code == 1
    assert outcome.output.splitlines() == [
        "offset 1  position 0",
        f"offset 2  position {len(first) + 1}  problem no such batch",
    ]


def test_time_and_transaction_indexes(ottla: Ottla, partition: Path) -> None:
    times, transactions = partition / "00000000000000000100.timeindex", partition / "100.txnindex"
    times.write_bytes(struct.pack(">qi", TIME_MS, 5))
    transactions.write_bytes(struct.pack(">hqqqq", 0, 9, 100, 105, 106) + b"\x00")
    assert ottla("dump", times).output == "timestamp 2023-11-14T22:13:20.123Z  offset 105\n"
    outcome = ottla("dump", transactions)
    assert outcome.output == (
        "producer id 9  first offset 100  last offset 105  last stable offset 106\n"
    )
    assert "not a whole entry" in outcome.errors


def test_what_is_not_there(ottla: Ottla, tmp_path: Path) -> None:
    assert ottla("dump", tmp_path / "nope.log").exit_code == 1
    assert "no segments" in ottla("dump", tmp_path).errors


def test_records_of_groups(ottla: Ottla, tmp_path: Path) -> None:
    directory = tmp_path / "__consumer_offsets-3"
    directory.mkdir()
    key = struct.pack(">hh3sh6si", 1, 3, b"grp", 6, b"orders", 0)
    batch = build_batch([Record(key=key, value=None), Record(key=b"\x00\x63", value=b"")])
    (directory / f"{NAME}.log").write_bytes(batch)
    _, deleted, unknown = ottla("dump", directory, "--deep").output.splitlines()
    assert '"type": "OffsetCommitRecord", "group_id": "grp"' in deleted
    assert '"type": "TopicPartition", "topic": "orders", "partition": 0' in deleted
    assert '"value": null' in deleted
    assert "99" in unknown
