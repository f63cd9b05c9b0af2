"""Pairs of transactional APIs."""

from typing import Any, NamedTuple

from tests.clients.pairs.of_groups import commit, fetch_offset
from tests.clients.pairs.of_logs import describe_producers, records_seen_by_second
from tests.clients.pairs.pair import (
    Pair,
    World,
    code_of_second,
    end_seen_by_second,
    fetch,
    list_offsets,
    pair,
    produce,
)
from tests.clients.requests import milliseconds
from tests.clients.versions import build_request

from ottla.protocol.errors import ErrorCode

INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN = 22, 24, 25, 26
WRITE_MARKERS, TXN_OFFSET_COMMIT = 27, 28
DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66
READ_COMMITTED = 1
ADDS_PARTITIONS, VERIFIES = 12, 11  # Versions of Produce.


class Producer(NamedTuple):
    transactional_id: str
    id: int
    epoch: int


def init(transactional_id: str | None) -> Any:
    timeout = milliseconds(60_000)
    values = {"transactional_id": transactional_id, "transaction_timeout": timeout}
    return build_request(INIT_PRODUCER_ID, 4, values)


def producer_of(world: World) -> Producer:
    transactional_id = world.transactional_id()
    response = world.call(init(transactional_id))
    return Producer(transactional_id, response.producer_id, response.producer_epoch)


def add(producer: Producer, topic: str) -> Any:
    values = {
        "v3_and_below_transactional_id": producer.transactional_id,
        "v3_and_below_producer_id": producer.id,
        "v3_and_below_producer_epoch": producer.epoch,
        "v3_and_below_topics": ({"name": topic, "partitions": (0,)},),
    }
    return build_request(ADD_PARTITIONS, 3, values)


def _named(producer: Producer) -> dict[str, object]:
    return {
        "transactional_id": producer.transactional_id,
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
    }


def add_offsets(producer: Producer, group: str) -> Any:
    return build_request(ADD_OFFSETS, 3, _named(producer) | {"group_id": group})


def end(producer: Producer, *, commit: bool = True) -> Any:
    return build_request(END_TXN, 3, _named(producer) | {"committed": commit})


def commit_in_transaction(producer: Producer, group: str, topic: str, offset: int) -> Any:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    topics = ({"name": topic, "partitions": (partition,)},)
    values = _named(producer) | {"group_id": group, "topics": topics}
    return build_request(TXN_OFFSET_COMMIT, 3, values)


def write(producer: Producer, topic: str, version: int = VERIFIES, sequence: int = 0) -> Any:
    return produce(
        topic,
        version=version,
        transactional_id=producer.transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
    )


def abort_marker(producer: Producer, topic: str) -> Any:
    marker = {
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "transaction_result": False,
        "topics": ({"name": topic, "partition_indexes": (0,)},),
        "coordinator_epoch": 0,
    }
    return build_request(WRITE_MARKERS, 1, {"markers": (marker,)})


def describe(producer: Producer) -> Any:
    values = {"transactional_ids": (producer.transactional_id,)}
    return build_request(DESCRIBE_TRANSACTIONS, 0, values)


def topics_seen_by_second(_: Any, second: Any) -> list[str]:
    (state,) = second.transaction_states
    assert state.transaction_state == "Ongoing"
    return [topic.topic for topic in state.topics]


def list_ongoing() -> Any:
    return build_request(LIST_TRANSACTIONS, 1, {"state_filters": ("Ongoing",)})


def transaction_starts(response: Any) -> list[int]:
    ((found,),) = (topic.partitions for topic in response.topics)
    return [producer.current_txn_start_offset for producer in found.active_producers]


def begun(world: World) -> tuple[Producer, str]:
    """A producer whose transaction has a topic, to which nothing is written yet."""
    producer, topic = producer_of(world), world.topic()
    world.call(add(producer, topic))
    return producer, topic


@pair
def init_producer_id_and_init_producer_id(world: World) -> Pair:
    transactional_id = world.transactional_id()

    def epochs_apart(first: Any, second: Any) -> tuple[bool, int]:
        epochs_apart: int = second.producer_epoch - first.producer_epoch
        return first.producer_id == second.producer_id, epochs_apart

    return Pair(init(transactional_id), init(transactional_id), epochs_apart, (True, 1))


@pair
def init_producer_id_and_list_transactions(world: World) -> Pair:
    transactional_id = world.transactional_id()
    second = build_request(LIST_TRANSACTIONS, 1, {"state_filters": ("Empty",)})

    def is_listed(_: Any, second: Any) -> bool:
        return transactional_id in [
            transaction.transactional_id for transaction in second.transaction_states
        ]

    return Pair(init(transactional_id), second, is_listed, True)


@pair
def init_producer_id_and_end_txn(world: World) -> Pair:
    """The new producer fences the previous one, and its transaction is aborted."""
    producer, _ = begun(world)
    second = end(producer)
    return Pair(init(producer.transactional_id), second, code_of_second, ErrorCode.producer_fenced)


@pair
def add_partitions_to_txn_and_describe_transactions(world: World) -> Pair:
    producer, topic = producer_of(world), world.topic()
    return Pair(add(producer, topic), describe(producer), topics_seen_by_second, [topic])


@pair
def add_partitions_to_txn_and_list_transactions(world: World) -> Pair:
    producer, topic = producer_of(world), world.topic()

    def is_listed(_: Any, second: Any) -> bool:
        return producer.id in [transaction.producer_id for transaction in second.transaction_states]

    return Pair(add(producer, topic), list_ongoing(), is_listed, True)


@pair
def add_partitions_to_txn_and_produce(world: World) -> Pair:
    producer, topic = producer_of(world), world.topic()
    return Pair(add(producer, topic), write(producer, topic), code_of_second, ErrorCode.none)


@pair
def add_partitions_to_txn_and_end_txn(world: World) -> Pair:
    producer, topic = producer_of(world), world.topic()
    return Pair(add(producer, topic), end(producer), code_of_second, ErrorCode.none)


@pair
def produce_in_txn_and_list_offsets(world: World) -> Pair:
    producer, topic = begun(world)
    return Pair(write(producer, topic), list_offsets(topic), end_seen_by_second, 1)


@pair
def produce_in_txn_and_list_committed_offsets(world: World) -> Pair:
    producer, topic = begun(world)
    second = list_offsets(topic, isolation_level=READ_COMMITTED)
    return Pair(write(producer, topic), second, end_seen_by_second, 0)


@pair
def produce_in_txn_and_describe_producers(world: World) -> Pair:
    producer, topic = begun(world)
    second = describe_producers(topic)
    return Pair(write(producer, topic), second, lambda _, second: transaction_starts(second), [0])


@pair
def produce_that_adds_and_describe_transactions(world: World) -> Pair:
    producer, topic = producer_of(world), world.topic()
    first = write(producer, topic, ADDS_PARTITIONS)
    return Pair(first, describe(producer), topics_seen_by_second, [topic])


@pair
def produce_that_adds_and_produce(world: World) -> Pair:
    """The first one asks the coordinator; the second, without a transaction, follows it."""
    producer, topic = producer_of(world), world.topic()

    def offsets(*responses: Any) -> list[int]:
        return [response.responses[0].partition_responses[0].base_offset for response in responses]

    return Pair(write(producer, topic, ADDS_PARTITIONS), produce(topic), offsets, [0, 1])


@pair
def produce_that_adds_and_fetch(world: World) -> Pair:
    producer, topic = producer_of(world), world.topic()
    first = write(producer, topic, ADDS_PARTITIONS)
    return Pair(first, fetch(topic), records_seen_by_second, 1)


@pair
def produce_that_adds_and_end_txn(world: World) -> Pair:
    producer, topic = producer_of(world), world.topic()
    first = write(producer, topic, ADDS_PARTITIONS)
    return Pair(first, end(producer), code_of_second, ErrorCode.none)


@pair
def end_txn_and_describe_transactions(world: World) -> Pair:
    producer, _ = begun(world)

    def is_ended(_: Any, second: Any) -> bool:
        return second.transaction_states[0].transaction_state in {"PrepareCommit", "CompleteCommit"}

    return Pair(end(producer), describe(producer), is_ended, True)


@pair
def end_txn_and_list_transactions(world: World) -> Pair:
    producer, _ = begun(world)

    def is_listed(_: Any, second: Any) -> bool:
        return producer.id in [transaction.producer_id for transaction in second.transaction_states]

    return Pair(end(producer), list_ongoing(), is_listed, False)


@pair
def add_offsets_to_txn_and_txn_offset_commit(world: World) -> Pair:
    producer, topic, group = producer_of(world), world.topic(), world.group()
    second = commit_in_transaction(producer, group, topic, 7)
    return Pair(add_offsets(producer, group), second, code_of_second, ErrorCode.none)


@pair
def txn_offset_commit_and_offset_fetch(world: World) -> Pair:
    producer, topic, group = producer_of(world), world.topic(), world.group()
    world.call(commit(group, topic, 6))
    world.call(add_offsets(producer, group))
    return Pair(
        commit_in_transaction(producer, group, topic, 7),
        fetch_offset(group, topic, require_stable=True),
        code_of_second,
        ErrorCode.unstable_offset_commit,
    )


@pair
def txn_offset_commit_and_end_txn(world: World) -> Pair:
    producer, topic, group = producer_of(world), world.topic(), world.group()
    world.call(add_offsets(producer, group))
    first = commit_in_transaction(producer, group, topic, 7)
    return Pair(first, end(producer), code_of_second, ErrorCode.none)


def written(world: World) -> tuple[Producer, str]:
    producer, topic = begun(world)
    world.call(write(producer, topic))
    return producer, topic


@pair
def write_txn_markers_and_list_offsets(world: World) -> Pair:
    producer, topic = written(world)
    second = list_offsets(topic, isolation_level=READ_COMMITTED)
    return Pair(abort_marker(producer, topic), second, end_seen_by_second, 2)


@pair
def write_txn_markers_and_describe_producers(world: World) -> Pair:
    producer, topic = written(world)
    second = describe_producers(topic)
    return Pair(
        abort_marker(producer, topic), second, lambda _, second: transaction_starts(second), [-1]
    )


@pair
def list_offsets_and_write_txn_markers(world: World) -> Pair:
    producer, topic = written(world)
    first = list_offsets(topic, isolation_level=READ_COMMITTED)
    second = abort_marker(producer, topic)
    return Pair(first, second, lambda first, _: first.topics[0].partitions[0].offset, 0)
