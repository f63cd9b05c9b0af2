"""Write record batches, also in transactions.

Transactions are exposed as in the protocol, one call per step: get a producer id, add partitions,
produce, end. Anyone who knows the transactional id, producer id and epoch can end a transaction, so
one process can write and another decide.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast

from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.produce.v13.request import PartitionProduceData
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import Records, i16, i32

from ottla.client.wire.cluster import (
    Cluster,
    CoordinatorType,
    TopicPartition,
    by_topic,
    expect_one,
)
from ottla.client.wire.connection import Connection
from ottla.client.wire.errors import BrokerError, error_of, validate_answer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds

_TWO_PHASE_VERSION = 6
_PRODUCE_TIMEOUT_MS = 30_000
_ACKS_ALL = -1


class Producer(NamedTuple):
    id: int
    epoch: int


class Initialized(NamedTuple):
    producer: Producer
    prepared: Producer | None  # The producer of the open transaction that was kept, if any.


def init_producer(cluster: Cluster) -> Producer:
    """A new idempotent producer without transactions."""

    def init() -> Producer:
        response = cluster.any_broker().call(producer_id_request())
        validate_answer(response.error_code, "a producer id")
        return Producer(response.producer_id, response.producer_epoch)

    return cluster.retry(init)


def init_transactions(
    cluster: Cluster,
    transactional_id: str,
    transaction_timeout_ms: int,
    *,
    two_phase: bool = False,
    keep_prepared: bool = False,
) -> Initialized:
    """A producer for the transactional id; fences earlier ones with this id.

    Aborts an open transaction unless `keep_prepared` asks to keep it (KIP-939). With `two_phase`,
    transactions do not time out. A broker that supports neither answers UNSUPPORTED_VERSION.
    """
    request = init_request(
        transactional_id,
        transaction_timeout_ms,
        two_phase=two_phase,
        keep_prepared=keep_prepared,
    )

    def init() -> Initialized:
        connection = _coordinator(cluster, transactional_id)
        if (two_phase or keep_prepared) and connection.version(
            request.__api_key__
        ) < _TWO_PHASE_VERSION:
            raise BrokerError(ErrorCode.unsupported_version, "two-phase commit")
        response = connection.call(request)
        validate_answer(response.error_code, f"a producer id for {transactional_id}")
        kept = Producer(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
        return Initialized(
            Producer(response.producer_id, response.producer_epoch),
            kept if kept.id >= 0 else None,
        )

    return cluster.retry(init)


def add_partitions(
    cluster: Cluster,
    transactional_id: str,
    producer: Producer,
    topic_partitions: Collection[TopicPartition],
) -> None:
    """Call before the first batch to each of the partitions."""
    request = add_partitions_request(transactional_id, producer, topic_partitions)

    def add() -> None:
        response = _coordinator(cluster, transactional_id).call(request)
        validate_added(response, transactional_id)

    cluster.retry(add)


def produce(
    cluster: Cluster,
    batches: Mapping[TopicPartition, bytes | bytearray],
    transactional_id: str | None = None,
) -> dict[TopicPartition, int]:
    """Write one batch to each partition and return their base offsets.

    Retries until acknowledged, so only an idempotent producer's batches are written exactly once.
    """
    return cluster.ask_leaders(
        batches, lambda asked: produce_request(asked, transactional_id), written_offsets
    )


def end_transaction(
    cluster: Cluster, transactional_id: str, producer: Producer, *, commit: bool
) -> Producer:
    """Commit or abort; repeating the same decision is no error.

    Returns the producer for the next transaction: with KIP-890 it has a new epoch, and its
    sequences start at 0.
    """
    request = end_request(transactional_id, producer, commit=commit)

    def end() -> Producer:
        response = _coordinator(cluster, transactional_id).call(request)
        validate_answer(response.error_code, f"the end of transaction {transactional_id}")
        if response.producer_id < 0:  # Before KIP-890 the producer stays the same.
            return producer
        return Producer(response.producer_id, response.producer_epoch)

    return cluster.retry(end)


def _coordinator(cluster: Cluster, transactional_id: str) -> Connection:
    return cluster.coordinator(CoordinatorType.TRANSACTION, transactional_id)


def written_offsets(response: Any) -> dict[TopicPartition, int | BrokerError]:
    """For `ask_leaders`: the base offset of each batch."""
    found: dict[TopicPartition, int | BrokerError] = {}
    for topic in response.responses:
        for answer in topic.partition_responses:
            topic_partition = TopicPartition(topic.name, answer.index)
            what = f"write to partition {topic_partition}"
            error = error_of(answer.error_code, what, answer.error_message)
            found[topic_partition] = error or answer.base_offset
    return found


def producer_id_request() -> InitProducerIdRequest:
    """For a producer without transactions."""
    return InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout=milliseconds(_PRODUCE_TIMEOUT_MS),
    )


def init_request(
    transactional_id: str,
    transaction_timeout_ms: int,
    *,
    two_phase: bool = False,
    keep_prepared: bool = False,
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=TransactionalId(transactional_id),
        transaction_timeout=milliseconds(transaction_timeout_ms),
        enable2_pc=two_phase,
        keep_prepared_txn=keep_prepared,
    )


def add_partitions_request(
    transactional_id: str, producer: Producer, topic_partitions: Collection[TopicPartition]
) -> AddPartitionsToTxnRequest:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=TransactionalId(transactional_id),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
        topics=tuple(
            AddPartitionsToTxnTopic(name=TopicName(topic), partitions=tuple(map(i32, partitions)))
            for topic, partitions in by_topic(topic_partitions).items()
        ),
    )
    return AddPartitionsToTxnRequest(transactions=(transaction,))


def validate_added(response: Any, transactional_id: str) -> None:
    for topic in expect_one(response.results_by_transaction).topic_results:
        for result in topic.results_by_partition:
            topic_partition = TopicPartition(topic.name, result.partition_index)
            what = f"partition {topic_partition} in transaction {transactional_id}"
            validate_answer(result.partition_error_code, what)


def end_request(transactional_id: str, producer: Producer, *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=TransactionalId(transactional_id),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
        committed=commit,
    )


def produce_request(
    batches: Mapping[TopicPartition, bytes | bytearray], transactional_id: str | None
) -> ProduceRequest:
    topics = tuple(
        TopicProduceData(
            name=topic,
            topic_id=None,
            partition_data=tuple(
                PartitionProduceData(
                    index=i32(partition),
                    records=cast("Records", batches[TopicPartition(topic, partition)]),
                )
                for partition in partitions
            ),
        )
        for topic, partitions in by_topic(batches).items()
    )
    return ProduceRequest(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        acks=i16(_ACKS_ALL),
        timeout=milliseconds(_PRODUCE_TIMEOUT_MS),
        topic_data=topics,
    )
