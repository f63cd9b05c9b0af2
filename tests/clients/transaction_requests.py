"""The requests of a producer with transactions v2 (KIP-890), one by one.

No client used here supports it. Every call states its API version.
"""

from typing import Any

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_partitions_to_txn.v3 import request as add_by_client
from kio.schema.add_partitions_to_txn.v5 import request as add_by_broker
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.end_txn.v3.request import EndTxnRequest as OlderEndTxnRequest
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v6.request import InitProducerIdRequest as TwoPhaseRequest
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.offset_fetch.v8.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kio.schema.produce.v11 import request as produce_v11
from kio.schema.produce.v12 import request as produce_v12
from kio.schema.txn_offset_commit.v4 import request as commit_v4
from kio.schema.txn_offset_commit.v5 import request as commit_v5
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.schema.write_txn_markers.v2.request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kio.static.primitive import i8, i16, i32
from tests.clients.requests import TIMEOUT, batch, milliseconds
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.transactions.transaction import Producer


class TransactionWire:
    """One transactional id on one connection."""

    def __init__(self, wire: Wire, transactional_id: str) -> None:
        self.wire = wire
        self.transactional_id = transactional_id

    def find_coordinator(self) -> None:
        request = FindCoordinatorRequest(key_type=i8(1), coordinator_keys=(self.transactional_id,))
        while (code := self.wire.call(request).coordinators[0].error_code) is not ErrorCode.none:
            assert code is ErrorCode.coordinator_not_available

    def init(self, *, two_phase: bool = False, **more: Any) -> Any:
        values: dict[str, Any] = {
            "transactional_id": self.transactional_id,
            "transaction_timeout": milliseconds(60_000),
        }
        request = (TwoPhaseRequest if two_phase else InitProducerIdRequest)(**values | more)
        while True:
            response = self.wire.call(request)
            if response.error_code not in {
                ErrorCode.concurrent_transactions,
                ErrorCode.coordinator_load_in_progress,
                ErrorCode.not_coordinator,  # Kafka's broker learns a moment later that it is.
            }:
                return response

    def producer(self, **more: Any) -> Producer:
        self.find_coordinator()
        response = self.init(**more)
        assert response.error_code is ErrorCode.none
        return Producer(response.producer_id, response.producer_epoch)

    def produce(
        self,
        producer: Producer,
        topic: str,
        value: bytes,
        *,
        sequence: int = 0,
        partition: int = 0,
        version: int = 12,
    ) -> Any:
        """Retries while the previous transaction is being completed, as clients do."""
        while True:
            self.send_produce(producer, topic, value, sequence, partition, version)
            produced = self.receive_produced(version)
            if produced.error_code is not ErrorCode.concurrent_transactions:
                return produced

    def send_produce(
        self,
        producer: Producer,
        topic: str,
        value: bytes,
        sequence: int = 0,
        partition: int = 0,
        version: int = 12,
    ) -> None:
        self.wire.send(self._produce(producer, topic, value, sequence, partition, version))

    def receive_produced(self, version: int = 12) -> Any:
        any_request = self._produce(Producer(0, 0), "", b"", 0, 0, version)
        ((produced,),) = (
            topic.partition_responses for topic in self.wire.receive(any_request).responses
        )
        return produced

    def _produce(
        self,
        producer: Producer,
        topic: str,
        value: bytes,
        sequence: int,
        partition: int,
        version: int,
    ) -> Any:
        module: Any = produce_v12 if version == 12 else produce_v11
        records = batch(
            value,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = module.PartitionProduceData(index=partition, records=records)
        return module.ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout=TIMEOUT,
            topic_data=(module.TopicProduceData(name=topic, partition_data=(data,)),),
        )

    def add(self, producer: Producer, topic: str, *partitions: int) -> list[ErrorCode]:
        """As an older client does."""
        request = add_by_client.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TransactionalId(self.transactional_id),
            v3_and_below_producer_id=ProducerId(producer.id),
            v3_and_below_producer_epoch=i16(producer.epoch),
            v3_and_below_topics=(
                add_by_client.AddPartitionsToTxnTopic(
                    name=TopicName(topic), partitions=tuple(map(i32, partitions))
                ),
            ),
        )
        (result,) = self.wire.call(request).results_by_topic_v3_and_below
        codes = {
            partition_result.partition_index: partition_result.partition_error_code
            for partition_result in result.results_by_partition
        }
        return [codes[i32(partition)] for partition in partitions]

    def verify(self, producer: Producer, topic: str, *partitions: int) -> list[ErrorCode]:
        """As another broker does."""
        transaction = add_by_broker.AddPartitionsToTxnTransaction(
            transactional_id=TransactionalId(self.transactional_id),
            producer_id=ProducerId(producer.id),
            producer_epoch=i16(producer.epoch),
            verify_only=True,
            topics=(
                add_by_broker.AddPartitionsToTxnTopic(
                    name=TopicName(topic), partitions=tuple(map(i32, partitions))
                ),
            ),
        )
        request = add_by_broker.AddPartitionsToTxnRequest(transactions=(transaction,))
        (result,) = self.wire.call(request).results_by_transaction
        ((topic_result,),) = (result.topic_results,)
        return [
            partition_result.partition_error_code
            for partition_result in topic_result.results_by_partition
        ]

    def add_offsets(self, producer: Producer, group_id: str) -> ErrorCode:
        request = AddOffsetsToTxnRequest(
            transactional_id=TransactionalId(self.transactional_id),
            producer_id=ProducerId(producer.id),
            producer_epoch=i16(producer.epoch),
            group_id=GroupId(group_id),
        )
        code: ErrorCode = self.wire.call(request).error_code
        return code

    def commit_offset(
        self, producer: Producer, group_id: str, topic: str, offset: int, *, version: int = 5
    ) -> ErrorCode:
        module: Any = commit_v5 if version == 5 else commit_v4
        partition = module.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = module.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=(module.TxnOffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
        )
        ((committed,),) = (
            topic_result.partitions for topic_result in self.wire.call(request).topics
        )
        code: ErrorCode = committed.error_code
        return code

    def committed_offset(
        self, group_id: str, topic: str, *, require_stable: bool = False
    ) -> int | ErrorCode:
        topics = (OffsetFetchRequestTopics(name=TopicName(topic), partition_indexes=(i32(0),)),)
        group = OffsetFetchRequestGroup(group_id=GroupId(group_id), topics=topics)
        request = OffsetFetchRequest(groups=(group,), require_stable=require_stable)
        (found,) = self.wire.call(request).groups
        ((partition,),) = (topic_result.partitions for topic_result in found.topics)
        code: ErrorCode = partition.error_code
        offset: int = partition.committed_offset
        return offset if code is ErrorCode.none else code

    def end(self, producer: Producer, *, commit: bool = True) -> Any:
        request = EndTxnRequest(
            transactional_id=TransactionalId(self.transactional_id),
            producer_id=ProducerId(producer.id),
            producer_epoch=i16(producer.epoch),
            committed=commit,
        )
        return self.wire.call(request)

    def committed(self, producer: Producer, *, commit: bool = True) -> Producer:
        while (
            response := self.end(producer, commit=commit)
        ).error_code is ErrorCode.concurrent_transactions:
            pass  # The previous one is being completed.
        assert response.error_code is ErrorCode.none
        return Producer(response.producer_id, response.producer_epoch)

    def end_as_older_client(self, producer: Producer, *, commit: bool = True) -> ErrorCode:
        request = OlderEndTxnRequest(
            transactional_id=TransactionalId(self.transactional_id),
            producer_id=ProducerId(producer.id),
            producer_epoch=i16(producer.epoch),
            committed=commit,
        )
        code: ErrorCode = self.wire.call(request).error_code
        return code

    def write_marker(self, producer: Producer, topic: str, *partitions: int) -> list[ErrorCode]:
        """Ends a hanging transaction, as an administrator would."""
        marker = WritableTxnMarker(
            producer_id=ProducerId(producer.id),
            producer_epoch=i16(producer.epoch),
            transaction_result=False,
            topics=(
                WritableTxnMarkerTopic(
                    name=TopicName(topic), partition_indexes=tuple(map(i32, partitions))
                ),
            ),
            coordinator_epoch=i32(0),
        )
        (result,) = self.wire.call(WriteTxnMarkersRequest(markers=(marker,))).markers
        ((topic_result,),) = (result.topics,)
        codes = {
            partition.partition_index: partition.error_code for partition in topic_result.partitions
        }
        return [codes[i32(partition)] for partition in partitions]

    def describe_raw(self) -> None:
        """Sends only: kio cannot read the answer of a transaction that has not begun."""
        self.wire.send(
            DescribeTransactionsRequest(transactional_ids=(TransactionalId(self.transactional_id),))
        )

    def describe(self) -> Any:
        request = DescribeTransactionsRequest(
            transactional_ids=(TransactionalId(self.transactional_id),)
        )
        (described,) = self.wire.call(request).transaction_states
        return described

    def await_state(self, name: str) -> None:
        """The end of a transaction is decided before its markers are written."""
        while self.describe().transaction_state != name:
            pass

    def list(self, **filters: Any) -> Any:
        return self.wire.call(ListTransactionsRequest(**filters))

    def producers(self, topic: str, partition: int = 0) -> Any:
        asked = TopicRequest(name=TopicName(topic), partition_indexes=(i32(partition),))
        ((found,),) = (
            topic_result.partitions
            for topic_result in self.wire.call(DescribeProducersRequest(topics=(asked,))).topics
        )
        return found
