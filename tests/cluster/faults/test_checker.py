"""The checker finds every kind of violation, and nothing else."""

import pytest
from tests.cluster.faults.checker import check, check_copies, check_group
from tests.cluster.faults.history import Copied, History, Partition, Transaction, Written

RECORDS = Partition("records", 0)
COPIES = Partition("copies", 0)


def history(*acked: tuple[Written, int | None], idempotent: bool = True) -> History:
    made = History()
    if idempotent:
        made.idempotent.add("a")
    for written, offset in acked:
        made.on_acked(RECORDS, written, offset)
    return made


def log(*numbers: int) -> dict[Partition, list[tuple[int, bytes]]]:
    """One writer's records, by their numbers."""
    return {
        RECORDS: [(offset, Written("a", number).encode()) for offset, number in enumerate(numbers)]
    }


def kinds(findings: list[str]) -> list[str]:
    return [finding.partition(":")[0] for finding in findings]


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((0, 1), []),
        ((0,), ["lost"]),
        ((1, 0), ["lost", "lost", "out of order"]),
        ((0, 1, 1), ["duplicated"]),
        ((0, 1, 0), ["duplicated"]),
    ],
)
def test_what_an_idempotent_writer_was_promised(numbers: tuple[int, ...], found: list[str]) -> None:
    written = history((Written("a", 0), 0), (Written("a", 1), 1))
    assert kinds(check(written, log(*numbers))) == found


def test_what_was_acknowledged_without_an_offset_is_there() -> None:
    written = history((Written("a", 0), 0), (Written("a", 1), None))
    assert check(written, log(0, 1)) == []
    assert kinds(check(written, log(0, 2))) == ["lost"]


def test_a_writer_that_is_not_idempotent_may_repeat_itself_and_change_places() -> None:
    written = history((Written("a", 0), 0), (Written("a", 1), 2), idempotent=False)
    assert check(written, log(0, 0, 1, 0)) == []
    assert kinds(check(written, log(1, 0, 1))) == ["lost"]
    assert check(written, log(0, 2, 1)) == []


def test_what_was_read_stays() -> None:
    seen = history()
    seen.on_consumed(RECORDS, [(0, b"a 0"), (1, b"a 7")])
    assert kinds(check(seen, log(0, 1))) == ["changed"]
    seen.on_consumed(RECORDS, [(1, b"a 1")])
    assert len(seen.problems) == 1


def test_a_group_has_read_everything() -> None:
    seen = history()
    seen.on_consumed(RECORDS, [(0, b"a 0")])
    assert kinds(check_group(seen, log(0, 1))) == ["not read"]


def copies(*transactions: int) -> dict[Partition, list[tuple[int, bytes]]]:
    """Copies of the records in order, each by one of these transactions."""
    return {
        COPIES: [
            (offset, Copied("c", transaction, RECORDS, offset).encode())
            for offset, transaction in enumerate(transactions)
        ]
    }


@pytest.mark.parametrize(
    ("committed", "by", "found"),
    [
        (True, (1, 1), []),
        (None, (1, 1), []),
        (True, (1,), ["torn", "copied 0 times"]),
        (None, (1,), ["torn", "copied 0 times"]),
        (False, (1, 1), ["torn"]),
        (True, (1, 2), ["torn", "torn"]),
    ],
)
def test_transactions_are_there_as_a_whole_or_not_at_all(
    committed: bool | None, by: tuple[int, ...], found: list[str]
) -> None:
    seen = history()
    seen.on_transaction(Transaction("c", 1, 2, committed))
    assert kinds(check_copies(seen, log(0, 1), copies(*by))) == found


def test_a_record_is_copied_once() -> None:
    seen = history()
    seen.on_transaction(Transaction("c", 1, 1, True))
    seen.on_transaction(Transaction("c", 2, 1, True))
    twice = {COPIES: copies(1)[COPIES] + [(1, Copied("c", 2, RECORDS, 0).encode())]}
    assert kinds(check_copies(seen, log(0), twice)) == ["copied 2 times"]
