"""The first difference of two replicas."""

import pytest

from ottla.records.batch import assign, iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.records.comparison import (
    Difference,
    batches_of,
    first_different_batch,
    first_different_record,
    records_of,
)


def batch(base_offset: int, *values: str, epoch: int = 3) -> bytes:
    records = [Record(timestamp=1, key=b"k", value=value.encode()) for value in values]
    built = bytearray(build_batch(records))
    assign(built, 0, base_offset, epoch)
    return bytes(built)


WHOLE = batch(0, "a", "b") + batch(2, "c") + batch(3, "d", "e")


@pytest.mark.parametrize(
    ("content", "difference"),
    [
        (WHOLE, None),
        (batch(0, "a", "b") + batch(3, "d", "e"), Difference(2, "lacks offsets 2 to 2")),
        (batch(0, "a", "b") + batch(2, "c"), Difference(3, "lacks offsets 3 to 4")),
        (b"", Difference(0, "lacks offsets 0 to 1")),
        (WHOLE + batch(5, "f"), Difference(5, "has offset 5, which is not there")),
        (
            batch(0, "a", "b") + batch(2, "c", epoch=4) + batch(3, "d", "e"),
            Difference(2, "has leader epoch 4, not 3"),
        ),
        (
            batch(0, "a", "b") + batch(2, "x") + batch(3, "d", "e"),
            Difference(2, "has other bytes at offsets 2 to 2"),
        ),
        (
            batch(0, "a") + batch(1, "b") + batch(2, "c"),
            Difference(0, "has a batch to offset 0, not to 1"),
        ),
    ],
)
def test_the_first_batch_that_differs(content: bytes, difference: Difference | None) -> None:
    assert first_different_batch(batches_of(WHOLE), batches_of(content)) == difference


def test_a_log_that_lacks_a_batch_is_seen_from_the_other_as_one_with_more() -> None:
    torn = batch(0, "a", "b") + batch(3, "d", "e")
    found = first_different_batch(batches_of(torn), batches_of(WHOLE))
    assert found == Difference(2, "has offset 2, which is not there")


def test_of_compacted_logs_common_records_are_compared() -> None:
    compacted = batch(1, "b") + batch(4, "e")
    assert first_different_record(records_of(WHOLE), records_of(compacted)) is None
    assert first_different_record(records_of(compacted), records_of(WHOLE)) is None
    other = batch(1, "b") + batch(4, "x")
    found = first_different_record(records_of(WHOLE), records_of(other))
    assert found == Difference(4, "has another record at offset 4")


def test_batches_are_those_of_the_headers() -> None:
    assert [found.base_offset for found in batches_of(WHOLE)] == [
        header.base_offset for _, header in iterate_headers(WHOLE)
    ]
