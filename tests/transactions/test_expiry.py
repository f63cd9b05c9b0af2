from tests.transactions.kit import START_MS, T0, Coordinator, refusal

from ottla.protocol.errors import ErrorCode
from ottla.transactions.config import TransactionConfig
from ottla.transactions.expiry import TOMBSTONES_MAX
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import TransactionState
from ottla.transactions.transaction import Producer, Transaction

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def test_unused_ids_are_forgotten() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    assert coordinator.advance(7 * DAY_MS - 1) == []
    assert coordinator.advance(HOUR_MS) == [TransactionRecord("x", None)]
    code = refusal(lambda: coordinator.add(producer, T0))
    assert code is ErrorCode.invalid_producer_id_mapping
    assert coordinator.producer() == (producer.id + 1, 0)


def test_use_keeps_an_id() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.advance(6 * DAY_MS)
    coordinator.add(producer, T0)
    coordinator.end(producer)
    coordinator.write_markers()
    assert coordinator.advance(7 * DAY_MS - 1) == []
    assert len(coordinator.advance(HOUR_MS)) == 1


def test_what_is_not_completed_is_kept() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.add(producer, T0)
    coordinator.end(producer)
    assert coordinator.advance(30 * DAY_MS) == []


def two_phase_producer(coordinator: Coordinator) -> Producer:
    response = coordinator.init(two_phase=True)
    return Producer(response.producer_id, response.producer_epoch)


def commit(coordinator: Coordinator, producer: Producer) -> Producer:
    coordinator.add(producer, T0, version=2)
    response = coordinator.end(producer, version=2)
    coordinator.write_markers()
    return Producer(response.producer_id, response.producer_epoch)


def test_an_id_for_one_two_phase_transaction_is_forgotten_soon_after_that() -> None:
    coordinator = Coordinator()
    commit(coordinator, two_phase_producer(coordinator))
    assert coordinator.advance(HOUR_MS - 1) == []
    assert coordinator.advance(HOUR_MS) == [TransactionRecord("x", None)]


def test_two_phase_transactions_are_kept_before_they_end() -> None:
    coordinator = Coordinator()
    producer = two_phase_producer(coordinator)
    assert coordinator.advance(6 * DAY_MS) == []
    coordinator.add(producer, T0, version=2)
    assert coordinator.advance(30 * DAY_MS) == []


def test_a_two_phase_producer_that_goes_on_is_kept() -> None:
    coordinator = Coordinator()
    producer = commit(coordinator, two_phase_producer(coordinator))
    commit(coordinator, producer)
    assert coordinator.advance(7 * DAY_MS - 1) == []
    assert coordinator.advance(HOUR_MS) == [TransactionRecord("x", None)]


def test_many_are_forgotten_in_portions() -> None:
    coordinator = Coordinator(TransactionConfig(id_expiration_ms=1))
    for number in range(TOMBSTONES_MAX + 1):
        state = Transaction(
            producer_id=number,
            producer_epoch=0,
            timeout_ms=1,
            state=TransactionState.EMPTY,
            updated_ms=START_MS,
        )
        coordinator.log.append(TransactionRecord(str(number), state))
    coordinator.reload()
    assert coordinator.advance(HOUR_MS - 1) == []
    tombstones = coordinator.advance(1)
    names = [str(number) for number in range(TOMBSTONES_MAX + 1)]
    assert tombstones == [TransactionRecord(name, None) for name in names]
    assert list(coordinator.machine.snapshot()) == []
