from ottla.records.batch import BatchHeader, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import ControlType, Marker
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.transaction_index import AbortedTransaction

COMMIT = Marker(ControlType.COMMIT, 0)
ABORT = Marker(ControlType.ABORT, 0)
ABORTED = AbortedTransaction(producer_id=7, first_offset=10, last_offset=13, last_stable_offset=14)


def header(
    offset: int, producer_id: int = 7, *, transactional: bool = True, count: int = 1
) -> BatchHeader:
    records = [Record(value=b"v")] * count
    return read_header(
        build_batch(
            records,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=transactional,
            last_offset_delta=max(count - 1, 0),
        )
    )


def test_batches_of_an_aborted_transaction_and_its_marker() -> None:
    transactions = CleanedTransactions()
    kept: list[AbortedTransaction] = []
    transactions.add_aborted([ABORTED])
    transactions.add_aborted([ABORTED])
    assert not transactions.on_batch(header(9, transactional=False))
    assert not transactions.on_batch(header(10, producer_id=8))
    assert transactions.on_batch(header(11))
    assert not transactions.on_batch(header(12, transactional=False))
    assert not transactions.on_marker(header(13), ABORT, kept.append)
    assert kept == [ABORTED]
    assert not transactions.on_batch(header(14))


def test_a_marker_can_go_when_its_batches_are_gone() -> None:
    transactions = CleanedTransactions()
    transactions.add_aborted([ABORTED])
    assert transactions.on_marker(header(13), ABORT)
    assert transactions.on_marker(header(15), COMMIT)
    assert not transactions.on_batch(header(16))
    assert not transactions.on_marker(header(17), COMMIT)
    assert transactions.on_marker(header(18), COMMIT)


def test_control_batches_of_other_kinds_stay_and_empty_ones_go() -> None:
    transactions = CleanedTransactions()
    assert not transactions.on_marker(header(1), None)
    assert transactions.on_marker(header(2, count=0), None)
