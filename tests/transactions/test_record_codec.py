import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.machine.record import UnknownRecord
from ottla.protocol.topics import TopicPartition
from ottla.transactions.record import TransactionRecord
from ottla.transactions.record_codec import TransactionRecordCodec
from ottla.transactions.state import TransactionState
from ottla.transactions.transaction import Transaction

codec = TransactionRecordCodec()

WRITTEN = [
    state
    for state in TransactionState
    if state not in {TransactionState.DEAD, TransactionState.EMPTY}
]


def transaction(**changes: Any) -> Transaction:
    ongoing = Transaction(
        producer_id=5,
        producer_epoch=3,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}),
        updated_ms=7,
        started_ms=6,
    )
    return replace(ongoing, **changes)


def test_the_bytes_are_those_of_kafka() -> None:
    key, value = codec.encode(TransactionRecord("ab", transaction()))
    assert key == bytes.fromhex("0000 0002 6162")
    assert value == bytes.fromhex(
        "0001"  # Version.
        "0000000000000005 0003 0000ea60 01"
        "02 02 74 03 00000000 00000001 00"  # One topic with two partitions.
        "0000000000000007 0000000000000006"
        "00"  # No tagged fields.
    )


def test_tagged_fields_are_written_when_they_say_something() -> None:
    newer = transaction(
        partitions=frozenset(),
        previous_producer_id=4,
        next_producer_id=9,
        next_producer_epoch=2,
        client_version=2,
    )
    _, value = codec.encode(TransactionRecord("ab", newer))
    assert value is not None
    assert value.endswith(
        bytes.fromhex("04 00 08 0000000000000004 01 08 0000000000000009 02 02 0002 03 02 0002")
    )


def test_an_empty_transaction_has_null_for_its_partitions() -> None:
    empty = transaction(state=TransactionState.EMPTY, partitions=frozenset(), started_ms=-1)
    _, value = codec.encode(TransactionRecord("ab", empty))
    assert value is not None
    assert value[17:18] == b"\x00"


def test_the_first_version_is_read() -> None:
    key = bytes.fromhex("0000 0002 6162")
    value = bytes.fromhex(
        "0000 0000000000000005 0003 0000ea60 01"
        "00000001 0001 74 00000002 00000000 00000001"
        "0000000000000007 0000000000000006"
    )
    assert codec.decode(key, value) == TransactionRecord("ab", transaction())


def test_a_tombstone_has_no_value() -> None:
    record = TransactionRecord("ab", None)
    key, value = codec.encode(record)
    assert value is None
    assert codec.decode(key, None) == record


def test_a_dead_transaction_is_forgotten() -> None:
    key, value = codec.encode(TransactionRecord("ab", transaction(state=TransactionState.DEAD)))
    assert codec.decode(key, value) == TransactionRecord("ab", None)


def test_keys_of_a_newer_kind_are_passed_over() -> None:
    assert codec.decode(struct.pack(">h", 7), b"") == UnknownRecord(7)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (None, b"", "has a key"),
        (b"\x00", b"", "starts with its version"),
        (b"\x00\x00\x00\x02a", b"", "reaches past"),
        (b"\x00\x00\x00\x01a", b"", "starts with its version"),
        (b"\x00\x00\x00\x01a", b"\x00\x09", "version 9 is not known"),
        (b"\x00\x00\x00\x01a", b"\x00\x01\x00", "not a TransactionLogValue"),
    ],
)
def test_other_bytes_are_refused(key: bytes | None, value: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        codec.decode(key, value)


def test_a_state_that_is_none_is_refused() -> None:
    key, value = codec.encode(TransactionRecord("ab", transaction()))
    assert value is not None
    with pytest.raises(ValueError, match="44 is not the state"):
        codec.decode(key, value[:16] + b"\x2c" + value[17:])


@given(
    st.builds(
        Transaction,
        producer_id=st.integers(0, 2**63 - 1),
        producer_epoch=st.integers(-1, 2**15 - 1),
        previous_producer_id=st.integers(-1, 2**63 - 1),
        next_producer_id=st.integers(-1, 2**63 - 1),
        next_producer_epoch=st.integers(-1, 2**15 - 1),
        timeout_ms=st.integers(0, 2**31 - 1),
        state=st.sampled_from(WRITTEN),
        partitions=st.frozensets(
            st.builds(TopicPartition, st.text("abc", min_size=1), st.integers(0, 2**31 - 1))
        ),
        updated_ms=st.integers(-1, 2**63 - 1),
        started_ms=st.integers(-1, 2**63 - 1),
        client_version=st.integers(0, 2),
    ),
    st.text(),
)
def test_what_is_written_is_read(state: Transaction, transactional_id: str) -> None:
    record = TransactionRecord(transactional_id, state)
    assert codec.decode(*codec.encode(record)) == record
