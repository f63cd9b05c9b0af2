"""`ottla transactions hanging`: transactions open in a partition that no coordinator knows of.

Nobody ends such a transaction, and `read_committed` consumers wait for it. It comes of a write of
an older client that was late, where writes are not verified.
"""

import datetime as dt
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v2.request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kio.static.primitive import i16, i32

from ottla.cli.broker_call import BrokerCall, check, every_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson, Flag
from ottla.cli.topic_lookup import no_topic
from ottla.protocol.topics import TopicPartition

COLUMNS = ("topic", "partition", "producer_id", "producer_epoch", "start_offset", "last_written")
UNENDED = ("Ongoing", "PrepareCommit", "PrepareAbort")
NO_OFFSET = -1
LONGEST_TRANSACTION_MS = 900_000  # The default of transaction.max.timeout.ms.


class OpenTransaction(NamedTuple):
    """As a partition's leader knows it."""

    leader: int
    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_written_ms: int


def hanging(
    *,
    topic: list[str] | None = None,
    longer_than_ms: int = LONGEST_TRANSACTION_MS,
    abort: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Find transactions that are open in a partition but unknown to any coordinator.

    Args:
        topic: Only in this topic; may be repeated.
        longer_than_ms: Only those without a write for this long.
        abort: Abort them.
    """
    until_ms = time.time_ns() // 1_000_000 - longer_than_ms
    found = find_hanging(connection, topic, until_ms)
    if abort:
        _abort(connection, found)
    rows = [_row(each) for each in found]
    if as_json:
        print_json({"aborted": abort, "transactions": rows})
        return
    print_rows(COLUMNS, rows)
    if found:
        print_line("they are aborted" if abort else "--abort ends them")


def find_hanging(
    connection: Connection, topics: list[str] | None, until_ms: int
) -> list[OpenTransaction]:
    """What ends while this looks for its coordinator is not open when it is looked at again."""
    candidates = set(_open_transactions(connection, topics))
    known = {pair for broker in every_broker(connection) for pair in _known_to(broker)}
    return [
        each
        for each in _open_transactions(connection, topics)
        if each in candidates
        and each.last_written_ms <= until_ms
        and (each.producer_id, each.topic_partition) not in known
    ]


def _open_transactions(
    connection: Connection, topics: list[str] | None
) -> Iterator[OpenTransaction]:
    existing = connection.metadata().topics
    by_leader: dict[int, list[TopicRequest]] = {}
    for name in sorted(existing) if topics is None else topics:
        if name not in existing:
            raise no_topic(name)
        led: dict[int, list[i32]] = {}
        for index, partition in existing[name].partitions.items():
            led.setdefault(partition.leader, []).append(i32(index))
        for leader, indexes in led.items():
            asked = TopicRequest(name=TopicName(name), partition_indexes=tuple(indexes))
            by_leader.setdefault(leader, []).append(asked)
    for broker in every_broker(connection):
        request = DescribeProducersRequest(topics=tuple(by_leader.get(broker.node_id, ())))
        response = broker.call(request)
        yield from _of_response(broker.node_id, response)


def _of_response(leader: int, response: Any) -> Iterator[OpenTransaction]:
    for topic in response.topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            check(partition.error_code, str(topic_partition), partition.error_message)
            for producer in partition.active_producers:
                if producer.current_txn_start_offset != NO_OFFSET:
                    yield OpenTransaction(
                        leader,
                        topic_partition,
                        producer.producer_id,
                        producer.producer_epoch,
                        producer.coordinator_epoch,
                        producer.current_txn_start_offset,
                        producer.last_timestamp,
                    )


def _known_to(broker: BrokerCall) -> list[tuple[int, TopicPartition]]:
    """Producer ids and partitions of the transactions that this coordinator will end."""
    request = ListTransactionsRequest(state_filters=UNENDED)
    listed = broker.call(request)
    check(listed.error_code, f"broker {broker.node_id}")
    ids = tuple(state.transactional_id for state in listed.transaction_states)
    described = broker.call(DescribeTransactionsRequest(transactional_ids=ids))
    return [
        (state.producer_id, TopicPartition(topic.topic, partition))
        for state in described.transaction_states
        for topic in state.topics
        for partition in topic.partitions
    ]


def _abort(connection: Connection, transactions: list[OpenTransaction]) -> None:
    for broker in every_broker(connection):
        for each in transactions:
            if each.leader == broker.node_id:
                _write_marker(broker, each)


def _write_marker(broker: BrokerCall, transaction: OpenTransaction) -> None:
    name, index = transaction.topic_partition
    marker = WritableTxnMarker(
        producer_id=ProducerId(transaction.producer_id),
        producer_epoch=i16(transaction.producer_epoch),
        transaction_result=False,
        topics=(WritableTxnMarkerTopic(name=TopicName(name), partition_indexes=(i32(index),)),),
        coordinator_epoch=i32(max(0, transaction.coordinator_epoch)),
    )
    response = broker.call(WriteTxnMarkersRequest(markers=(marker,)))
    for result in response.markers:
        for topic in result.topics:
            for partition in topic.partitions:
                check(partition.error_code, str(transaction.topic_partition))


def _row(transaction: OpenTransaction) -> dict[str, Any]:
    written = dt.datetime.fromtimestamp(transaction.last_written_ms / 1000, dt.UTC)
    return {
        **transaction.topic_partition._asdict(),
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "start_offset": transaction.start_offset,
        "last_written": written.isoformat(),
    }
