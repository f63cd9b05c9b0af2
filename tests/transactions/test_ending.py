from functools import partial

import pytest
from kio.schema.end_txn.v5.response import EndTxnResponse
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse
from tests.transactions.kit import FIRST_ID, START_MS, T0, T1, Coordinator, recorded, refusal

from ottla.protocol.errors import ErrorCode
from ottla.transactions.ending import PendingMarkers
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import TransactionState
from ottla.transactions.transaction import Producer, Transaction

VERSIONS = [0, 2]


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def producer(coordinator: Coordinator) -> Producer:
    return coordinator.producer()


def held(response: EndTxnResponse | InitProducerIdResponse) -> Producer:
    assert response.error_code is ErrorCode.none
    return Producer(response.producer_id, response.producer_epoch)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_whole_way(
    coordinator: Coordinator, producer: Producer, version: int, commit: bool
) -> None:
    coordinator.add(producer, T0, T1, version=version)
    coordinator.advance(5)
    epoch = 1 if version else 0
    assert held(coordinator.end(producer, commit=commit, version=version)) == (FIRST_ID, epoch)
    prepared = Transaction(
        producer_id=FIRST_ID,
        producer_epoch=epoch,
        previous_producer_id=FIRST_ID if version else -1,
        timeout_ms=60_000,
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        partitions=frozenset({T0, T1}),
        started_ms=START_MS,
        updated_ms=START_MS + 5,
        client_version=version,
    )
    assert recorded(coordinator.last_records) == [prepared]

    assert coordinator.write_markers() == PendingMarkers(
        FIRST_ID, epoch, commit, version, frozenset({T0, T1})
    )
    assert recorded(coordinator.last_records) == [prepared.completed(START_MS + 5)]
    done = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
    assert coordinator.state() is done
    assert coordinator.transaction().partitions == frozenset()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_end_that_is_repeated_has_the_same_answer(
    coordinator: Coordinator, producer: Producer, version: int
) -> None:
    coordinator.add(producer, T0, version=version)
    first = coordinator.end(producer, version=version)

    def again(*, commit: bool = True) -> EndTxnResponse:
        return coordinator.end(producer, version=version, commit=commit)

    assert refusal(again) is ErrorCode.concurrent_transactions
    assert refusal(lambda: again(commit=False)) is ErrorCode.invalid_txn_state
    coordinator.write_markers()
    assert again() == first
    assert refusal(lambda: again(commit=False)) is ErrorCode.invalid_txn_state
    assert coordinator.last_records == ()


def test_in_the_next_transaction_the_last_end_is_fenced(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.add(producer, T0, version=2)
    second = held(coordinator.end(producer, version=2))
    coordinator.write_markers()
    coordinator.add(second, T0, version=2)
    assert refusal(lambda: coordinator.end(producer, version=2)) is ErrorCode.producer_fenced


def test_after_a_new_epoch_was_asked_for_the_last_end_is_fenced(
    coordinator: Coordinator, producer: Producer
) -> None:
    """As in Apache Kafka: only an end raises the epoch in a repeatable way."""
    coordinator.add(producer, T0, version=2)
    second = held(coordinator.end(producer, version=2))
    coordinator.write_markers()
    assert held(coordinator.init(expected=second)) == second.bumped
    for late in (producer, second):
        for commit in (True, False):
            code = refusal(partial(coordinator.end, late, version=2, commit=commit))
            assert code is ErrorCode.producer_fenced
    assert coordinator.last_records == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_without_a_transaction_is_refused(
    coordinator: Coordinator, producer: Producer, version: int
) -> None:
    code = refusal(lambda: coordinator.end(producer, version=version))
    assert code is ErrorCode.invalid_txn_state


def test_an_older_client_cannot_abort_what_is_not_open(
    coordinator: Coordinator, producer: Producer
) -> None:
    code = refusal(lambda: coordinator.end(producer, commit=False))
    assert code is ErrorCode.invalid_txn_state


def test_a_newer_client_can_abort_what_has_no_partitions(
    coordinator: Coordinator, producer: Producer
) -> None:
    """Its first write may be in flight when it aborts; the new epoch fences that."""
    for epoch in (1, 2, 3):
        producer = held(coordinator.end(producer, commit=False, version=2))
        assert producer == (FIRST_ID, epoch)
        assert coordinator.write_markers().partitions == frozenset()


def test_a_newer_client_cannot_commit_twice(coordinator: Coordinator, producer: Producer) -> None:
    coordinator.add(producer, T0, version=2)
    second = held(coordinator.end(producer, version=2))
    coordinator.write_markers()
    code = refusal(lambda: coordinator.end(second, version=2))
    assert code is ErrorCode.invalid_txn_state


def test_while_it_completes_the_next_one_cannot_end(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.add(producer, T0, version=2)
    second = held(coordinator.end(producer, version=2))
    code = refusal(lambda: coordinator.end(second, version=2, commit=False))
    assert code is ErrorCode.concurrent_transactions


def test_after_the_last_epoch_the_client_goes_on_with_a_new_id(coordinator: Coordinator) -> None:
    last = Producer(5, 2**15 - 2)
    opened = Transaction(
        producer_id=last.id,
        producer_epoch=last.epoch,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset({T0}),
        started_ms=START_MS,
        updated_ms=START_MS,
        client_version=2,
    )
    coordinator.log.append(TransactionRecord("x", opened))
    coordinator.reload()

    following = held(coordinator.end(last, version=2))
    assert following == (FIRST_ID, 0)
    assert recorded(coordinator.last_records)[0].next_producer_id == FIRST_ID
    code = refusal(lambda: coordinator.add(following, T0, version=2))
    assert code is ErrorCode.concurrent_transactions
    written = coordinator.write_markers()
    assert (written.producer_id, written.producer_epoch) == (5, 2**15 - 1)
    assert held(coordinator.end(last, version=2)) == following
    coordinator.add(following, T0, version=2)


def test_markers_are_asked_for_when_a_record_decides(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.add(producer, T0)
    assert coordinator.decided == []
    assert coordinator.run(lambda _: coordinator.machine.markers_of("x")) is None
    coordinator.end(producer)
    assert coordinator.decided == ["x"]


def test_another_coordinator_goes_on(coordinator: Coordinator, producer: Producer) -> None:
    coordinator.add(producer, T0)
    coordinator.end(producer)
    coordinator.reload()
    assert coordinator.decided == ["x"]
    assert coordinator.write_markers().partitions == {T0}
    coordinator.reload()
    assert coordinator.decided == []
    assert coordinator.state() is TransactionState.COMPLETE_COMMIT


def test_completing_twice_does_nothing(coordinator: Coordinator, producer: Producer) -> None:
    coordinator.add(producer, T0)
    coordinator.end(producer)
    written = coordinator.write_markers()
    for transactional_id in ("x", "unknown"):
        coordinator.run(partial(coordinator.machine.complete, transactional_id, written))
        assert coordinator.last_records == ()


def test_markers_of_an_earlier_transaction_do_not_complete_the_next(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.add(producer, T0, version=2)
    second = held(coordinator.end(producer, version=2))
    first_markers = coordinator.write_markers()
    coordinator.add(second, T0, version=2)
    coordinator.end(second, version=2)
    coordinator.run(lambda now_ms: coordinator.machine.complete("x", first_markers, now_ms))
    assert coordinator.state() is TransactionState.PREPARE_COMMIT


@pytest.mark.parametrize("version", VERSIONS)
def test_a_late_transaction_is_aborted_and_its_producer_fenced(
    coordinator: Coordinator, producer: Producer, version: int
) -> None:
    coordinator.add(producer, T0, version=version)
    assert coordinator.advance(59_999) == []
    (aborted,) = recorded(coordinator.advance(1))
    assert aborted.state is TransactionState.PREPARE_ABORT
    assert aborted.producer_epoch == 1
    for commit in (True, False):
        code = refusal(partial(coordinator.end, producer, version=version, commit=commit))
        assert code is ErrorCode.producer_fenced
    coordinator.write_markers()
    assert coordinator.state() is TransactionState.COMPLETE_ABORT
    assert refusal(lambda: coordinator.add(producer, T0)) is ErrorCode.producer_fenced


def test_the_time_runs_from_the_first_partition(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.advance(60_000)
    coordinator.add(producer, T0)
    coordinator.advance(30_000)
    coordinator.add(producer, T1)
    assert coordinator.advance(29_999) == []
    assert len(coordinator.advance(1)) == 1


def test_another_coordinator_keeps_the_time(coordinator: Coordinator, producer: Producer) -> None:
    coordinator.add(producer, T0)
    coordinator.advance(50_000)
    coordinator.reload()
    assert coordinator.advance(9_999) == []
    assert len(coordinator.advance(1)) == 1


def test_what_has_ended_does_not_time_out(coordinator: Coordinator, producer: Producer) -> None:
    coordinator.add(producer, T0)
    coordinator.end(producer)
    assert coordinator.timers.names() == {"transactions/expire"}
    assert coordinator.advance(120_000) == []
