"""Transactions v2, and what no client does, on the wire."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigSource
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import CreateTopic
from tests.clients.requests import fetch, fetched, milliseconds
from tests.clients.transaction_requests import TransactionWire
from tests.clients.transactional import values
from tests.clients.wire import Wire
from tests.conftest import EXTERNAL_BOOTSTRAP

from ottla.protocol.errors import ErrorCode
from ottla.transactions.transaction import Producer


@pytest.fixture
def txn(wire: Wire, new_name: Callable[[], str]) -> TransactionWire:
    return TransactionWire(wire, new_name())


@pytest.fixture
def producer(txn: TransactionWire) -> Producer:
    return txn.producer()


def test_the_first_write_adds_its_partition(
    txn: TransactionWire, producer: Producer, bootstrap: str, create_topic: CreateTopic
) -> None:
    topic = create_topic(2)
    for partition in (0, 1):
        produced = txn.produce(producer, topic, b"value", partition=partition)
        assert produced.error_code is ErrorCode.none
    described = txn.describe()
    assert described.transaction_state == "Ongoing"
    assert [
        (described_topic.topic, {*described_topic.partitions})
        for described_topic in described.topics
    ] == [(topic, {0, 1})]
    assert txn.committed(producer) == (producer.id, producer.epoch + 1)
    txn.await_state("CompleteCommit")
    assert values(bootstrap, topic, 0) == values(bootstrap, topic, 1) == [b"value"]


def test_every_transaction_has_an_epoch_of_its_own(
    txn: TransactionWire, producer: Producer, bootstrap: str, topic: str
) -> None:
    for number in range(5):
        produced = txn.produce(producer, topic, b"%d" % number)
        assert produced.error_code is ErrorCode.none
        following = txn.committed(producer, commit=number % 2 == 0)
        assert following == (producer.id, number + 1)
        producer = following
    txn.init()
    assert values(bootstrap, topic) == [b"0", b"2", b"4"]


def test_writes_behind_the_first_keep_their_order(
    txn: TransactionWire, producer: Producer, bootstrap: str, topic: str
) -> None:
    for number in range(5):
        txn.send_produce(producer, topic, b"%d" % number, number)
    codes = [txn.receive_produced().error_code for _ in range(5)]
    assert codes == [ErrorCode.none] * 5
    txn.committed(producer)
    txn.init()
    assert values(bootstrap, topic) == [b"0", b"1", b"2", b"3", b"4"]


def test_aborted_transactions_are_listed_in_offset_order(
    wire: Wire, new_name: Callable[[], str], topic: str
) -> None:
    """They begin in one order and end in the other; Kafka lists them by end."""
    transactions = [TransactionWire(wire, new_name()) for _ in range(3)]
    producers = [txn.producer() for txn in transactions]
    for txn, producer in zip(transactions, producers, strict=True):
        assert txn.produce(producer, topic, b"value").error_code is ErrorCode.none
    for txn, producer in reversed([*zip(transactions, producers, strict=True)]):
        txn.committed(producer, commit=False)
        txn.init()
    found = fetched(wire.call(replace(fetch(topic, 0), isolation_level=1)))
    assert found.last_stable_offset == found.high_watermark == 6
    aborted = [
        (aborted_transaction.producer_id, aborted_transaction.first_offset)
        for aborted_transaction in found.aborted_transactions
    ]
    expected = [(producer.id, offset) for offset, producer in enumerate(producers)]
    assert aborted in (expected, expected[::-1] if EXTERNAL_BOOTSTRAP else expected)


def test_no_late_transaction_stays_open(
    wire: Wire, new_name: Callable[[], str], topic: str
) -> None:
    """However their start times fall between ticks of the broker's timers."""
    transactions = [TransactionWire(wire, new_name()) for _ in range(40)]
    for timeout_ms, txn in enumerate(transactions, 1):
        producer = txn.producer(transaction_timeout=milliseconds(timeout_ms))
        assert txn.add(producer, topic, 0) == [ErrorCode.none]
    for txn in transactions:
        txn.await_state("CompleteAbort")


def test_the_end_of_a_transaction_fences_its_late_writes(
    txn: TransactionWire, producer: Producer, bootstrap: str, create_topic: CreateTopic
) -> None:
    topic = create_topic(2)
    txn.produce(producer, topic, b"in time")
    txn.committed(producer)
    txn.await_state("CompleteCommit")
    for partition, sequence in ((0, 1), (1, 0)):
        late = txn.produce(producer, topic, b"late", sequence=sequence, partition=partition)
        assert late.error_code is ErrorCode.invalid_producer_epoch
    assert values(bootstrap, topic, 1, isolation="read_uncommitted") == []


def test_an_older_client_adds_its_partitions_itself(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    refused = txn.produce(producer, topic, b"value", version=11)
    assert refused.error_code is ErrorCode.transaction_abortable
    assert txn.add(producer, topic, 0) == [ErrorCode.none]
    written = txn.produce(producer, topic, b"value", version=11)
    assert (written.error_code, written.base_offset) == (ErrorCode.none, 0)
    assert txn.end_as_older_client(producer) is ErrorCode.none
    txn.await_state("CompleteCommit")
    late = txn.produce(producer, topic, b"late", sequence=1, version=11)
    assert late.error_code is ErrorCode.transaction_abortable


@pytest.fixture
def without_verification(confluent: ConfluentClient) -> Iterator[None]:
    key = "transaction.partition.verification.enable"
    confluent.alter_brokers(AlterConfigOpType.SET, key, "false")
    yield
    confluent.alter_brokers(AlterConfigOpType.DELETE, key, None)


@pytest.mark.usefixtures("without_verification")
def test_without_verification_older_clients_write_outside_a_transaction(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    while (produced := txn.produce(producer, topic, b"value", version=11)).error_code:
        assert produced.error_code is ErrorCode.transaction_abortable  # Kafka takes a moment.
    (open_here,) = txn.producers(topic).active_producers
    assert open_here.current_txn_start_offset == 0
    ended_by_nobody = txn.end_as_older_client(producer)
    assert ended_by_nobody is ErrorCode.invalid_txn_state
    assert txn.write_marker(producer, topic, 0) == [ErrorCode.none]


@pytest.mark.usefixtures("without_verification")
def test_without_verification_older_clients_commit_offsets_outside_a_transaction(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    group = f"{topic}-group"
    txn.add_offsets(producer, group)
    assert txn.end_as_older_client(producer, commit=False) is ErrorCode.none
    txn.await_state("CompleteAbort")
    retried = {ErrorCode.concurrent_transactions, ErrorCode.coordinator_load_in_progress}
    while code := txn.commit_offset(producer, group, topic, 3, version=4):
        assert code in retried | {ErrorCode.transaction_abortable}
    unstable = txn.committed_offset(group, topic, require_stable=True)
    assert unstable is ErrorCode.unstable_offset_commit


@pytest.mark.usefixtures("without_verification")
def test_without_verification_the_writes_of_newer_clients_are_in_their_transaction(
    txn: TransactionWire, producer: Producer, bootstrap: str, topic: str
) -> None:
    assert txn.produce(producer, topic, b"value").error_code is ErrorCode.none
    following = txn.committed(producer)
    txn.init()
    assert values(bootstrap, topic) == [b"value"]
    late = txn.produce(producer, topic, b"late", sequence=1)
    assert late.error_code is ErrorCode.invalid_producer_epoch
    assert following.epoch == producer.epoch + 1


def test_records_of_another_producer_are_refused(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    stranger = Producer(producer.id + 1, 0)
    code = txn.produce(stranger, topic, b"value").error_code
    assert code is ErrorCode.invalid_producer_id_mapping
    newer = Producer(producer.id, producer.epoch + 1)
    assert txn.produce(newer, topic, b"value").error_code is ErrorCode.invalid_producer_epoch


def test_partitions_that_are_not_there_are_not_added(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    codes = txn.add(producer, topic, 0, 7)
    assert codes == [ErrorCode.operation_not_attempted, ErrorCode.unknown_topic_or_partition]
    for internal in ("__transaction_state", "__consumer_offsets"):
        assert txn.add(producer, internal, 0) == [ErrorCode.topic_authorization_failed]
    assert txn.verify(producer, topic, 0) == [ErrorCode.transaction_abortable]


def test_a_fenced_producer_is_told_so_in_the_words_of_its_version(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    txn.init()
    assert txn.add(producer, topic, 0) == [ErrorCode.producer_fenced]
    assert txn.add_offsets(producer, "g") is ErrorCode.producer_fenced
    assert txn.end(producer).error_code is ErrorCode.producer_fenced
    assert txn.commit_offset(producer, "g", topic, 1) in {
        ErrorCode.invalid_producer_epoch,
        ErrorCode.not_coordinator,
    }


def test_offsets_in_a_transaction_are_those_of_a_group_with_a_name(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    assert txn.commit_offset(producer, "", topic, 1) is ErrorCode.invalid_group_id
    assert txn.end_as_older_client(producer) is ErrorCode.invalid_txn_state


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_count_when_their_transaction_does(
    txn: TransactionWire, producer: Producer, topic: str, commit: bool
) -> None:
    group = f"{topic}-group"
    assert txn.add_offsets(producer, group) is ErrorCode.none  # Also creates the topic.
    while txn.commit_offset(producer, group, topic, 7) is not ErrorCode.none:
        pass  # The coordinator is loading.
    assert txn.committed_offset(group, topic) == -1
    unstable = txn.committed_offset(group, topic, require_stable=True)
    assert unstable is ErrorCode.unstable_offset_commit
    txn.committed(producer, commit=commit)
    txn.init()
    assert txn.committed_offset(group, topic, require_stable=True) == (7 if commit else -1)


def test_offsets_of_a_newer_client_add_themselves(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    group = f"{topic}-group"
    txn.add_offsets(producer, group)
    producer = txn.committed(producer, commit=False)
    while (code := txn.commit_offset(producer, group, topic, 3)) is not ErrorCode.none:
        assert code in {ErrorCode.concurrent_transactions, ErrorCode.coordinator_load_in_progress}
    txn.committed(producer)
    txn.init()
    assert txn.committed_offset(group, topic) == 3


@pytest.mark.usefixtures("own_broker")  # Kafka 4.3 does not keep prepared transactions.
def test_a_restarted_producer_can_keep_what_was_prepared(
    txn: TransactionWire, producer: Producer, bootstrap: str, topic: str
) -> None:
    txn.produce(producer, topic, b"prepared")
    response = txn.init(two_phase=True, keep_prepared_txn=True)
    ongoing = Producer(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
    assert ongoing == producer
    second = Producer(response.producer_id, response.producer_epoch)
    assert txn.end(producer).error_code is ErrorCode.producer_fenced
    assert values(bootstrap, topic) == []
    third = txn.committed(second)
    assert third.epoch == second.epoch + 1
    txn.produce(third, topic, b"next")
    txn.committed(third)
    txn.init()
    assert values(bootstrap, topic) == [b"prepared", b"next"]


@pytest.mark.usefixtures("own_broker")
def test_two_phase_commit_need_not_be_turned_on_as_with_kafka(txn: TransactionWire) -> None:
    txn.find_coordinator()
    assert txn.init(two_phase=True, enable2_pc=True).error_code is ErrorCode.none


def test_the_log_of_transactions_never_has_an_unclean_leader(
    producer: Producer, confluent: ConfluentClient
) -> None:
    """Even where the brokers allow one by default."""
    assert producer.epoch == 0  # The topic exists.
    key = confluent.describe("__transaction_state")["unclean.leader.election.enable"]
    assert (key.value, ConfigSource(key.source)) == ("false", ConfigSource.DYNAMIC_TOPIC_CONFIG)


def test_transactions_are_listed(txn: TransactionWire, producer: Producer, topic: str) -> None:
    txn.produce(producer, topic, b"value")

    def listed(**filters: object) -> list[tuple[str, int, str]]:
        return [
            (transaction.transactional_id, transaction.producer_id, transaction.transaction_state)
            for transaction in txn.list(**filters).transaction_states
            if transaction.transactional_id == txn.transactional_id
        ]

    found = [(txn.transactional_id, producer.id, "Ongoing")]
    assert listed() == found
    assert listed(producer_id_filters=(producer.id,), state_filters=("Ongoing",)) == found
    assert listed(transactional_id_pattern=f"{txn.transactional_id[:-1]}.") == found
    assert listed(state_filters=("Empty",)) == []
    assert listed(transactional_id_pattern="nobody.*") == []
    assert listed(duration_filter=3_600_000) == []
    response = txn.list(state_filters=("Ongoing", "Lost"))
    assert response.unknown_state_filters == ("Lost",)
    code = txn.list(transactional_id_pattern="(").error_code
    assert code is ErrorCode.invalid_regular_expression


def test_what_is_not_known_is_not_described(txn: TransactionWire, bootstrap: str) -> None:
    txn.find_coordinator()
    txn.describe_raw()
    frame = txn.wire.receive_frame()
    assert int(ErrorCode.transactional_id_not_found).to_bytes(2, "big") in frame


@pytest.mark.usefixtures("own_broker")  # Kafka writes the marker.
def test_the_log_of_transactions_takes_no_marker(txn: TransactionWire, producer: Producer) -> None:
    assert txn.write_marker(producer, "__transaction_state", 0) == [
        ErrorCode.invalid_topic_exception
    ]


def test_a_transaction_that_hangs_can_be_ended(
    txn: TransactionWire, producer: Producer, bootstrap: str, topic: str
) -> None:
    txn.produce(producer, topic, b"hangs")
    described = txn.producers(topic)
    (found,) = described.active_producers
    assert (found.producer_id, found.current_txn_start_offset) == (producer.id, 0)
    assert txn.write_marker(producer, topic, 0, 7) == [
        ErrorCode.none,
        ErrorCode.unknown_topic_or_partition,
    ]
    (found,) = txn.producers(topic).active_producers
    assert found.current_txn_start_offset == -1
    assert txn.producers("nowhere").error_code is ErrorCode.unknown_topic_or_partition
