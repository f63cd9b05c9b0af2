"""A transactional producer: one transaction after another, in either version of the protocol.

Whatever fails leaves the transaction open or undecided; the owner then begins anew with `init`,
which ends it one way or the other.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.produce.v13.request import PartitionProduceData
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequestPartition
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import Records, i16, i32, i64

from ottla.client.wire.cluster import CoordinatorType
from ottla.protocol.addresses import Address
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import Record, build_batch
from ottla.testing.simulator.clients.client import Client, check

TIMEOUT_MS = 3_000
TRANSACTION_TIMEOUT_MS = 10_000


class TransactionalProducer:
    """Every method raises Unavailable or RefusedError."""

    def __init__(self, client: Client, transactional_id: str) -> None:
        self._client = client
        self._transactional_id = TransactionalId(transactional_id)
        self._adds_by_itself = client.chance.random() < 0.5  # Version 2 (KIP-890).
        self._producer_id = ProducerId(-1)
        self._epoch = i16(-1)
        self._sequences: dict[TopicPartition, int] = {}

    async def init(self) -> None:
        """End what was open before, and keep earlier producers of this id from going on."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout=milliseconds(TRANSACTION_TIMEOUT_MS),
        )
        response = await self._call_coordinator(request, 5)
        self._identify(response.producer_id, response.producer_epoch)

    async def produce(self, values: Mapping[TopicPartition, Sequence[bytes]]) -> None:
        if not self._adds_by_itself:
            await self._add_partitions(values)
        for partition, records in values.items():
            await self._produce(partition, records)

    async def commit_offset(self, group: str, partition: TopicPartition, offset: int) -> None:
        if not self._adds_by_itself:
            await self._add_offsets(group)
        topic, index = partition
        committed = TxnOffsetCommitRequestPartition(
            partition_index=i32(index), committed_offset=i64(offset), committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=GroupId(group),
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            group_instance_id=None,
            topics=(TxnOffsetCommitRequestTopic(name=TopicName(topic), partitions=(committed,)),),
        )
        version = 5 if self._adds_by_itself else 4
        async with self._client.coordinator(CoordinatorType.GROUP, group) as address:
            response = await self._client.call(address, request, version)
            ((result,),) = (each.partitions for each in response.topics)
            check(result.error_code)

    async def end(self, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commit,
        )
        version = 5 if self._adds_by_itself else 4
        response = await self._call_coordinator(request, version)
        if self._adds_by_itself:
            self._identify(response.producer_id, response.producer_epoch)

    def _identify(self, producer_id: ProducerId, epoch: i16) -> None:
        if (producer_id, epoch) != (self._producer_id, self._epoch):
            self._producer_id, self._epoch = producer_id, epoch
            self._sequences.clear()

    async def _add_partitions(self, partitions: Mapping[TopicPartition, object]) -> None:
        topics: dict[str, list[i32]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(i32(index))
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=tuple(
                AddPartitionsToTxnTopic(name=TopicName(topic), partitions=tuple(indexes))
                for topic, indexes in topics.items()
            ),
        )
        request = AddPartitionsToTxnRequest(transactions=(transaction,))
        async with self._coordinator() as address:
            response = await self._client.call(address, request, 3)
            (result,) = response.results_by_transaction
            for topic_result in result.topic_results:
                for each in topic_result.results_by_partition:
                    check(each.partition_error_code)

    async def _add_offsets(self, group: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            group_id=GroupId(group),
        )
        await self._call_coordinator(request, 4)

    async def _produce(self, partition: TopicPartition, values: Sequence[bytes]) -> None:
        client = self._client
        sequence = self._sequences.get(partition, 0)
        now_ms = client.host.now_ms()
        batch = build_batch(
            [Record(timestamp=now_ms, value=value) for value in values],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            transactional=True,
        )
        topic, index = partition
        data = PartitionProduceData(index=i32(index), records=Records(bytes(batch)))
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=i16(-1),
            timeout=milliseconds(TIMEOUT_MS),
            topic_data=(
                TopicProduceData(
                    name=topic, topic_id=client.topic_ids.get(topic), partition_data=(data,)
                ),
            ),
        )
        version = 12 if self._adds_by_itself else 10
        async with client.leader(partition) as leader:
            response = await client.call(
                leader.address, request, version, timeout_ms=2 * TIMEOUT_MS
            )
            ((result,),) = (each.partition_responses for each in response.responses)
            check(result.error_code)
        self._sequences[partition] = sequence + len(values)

    async def _call_coordinator(self, request: object, version: int) -> Any:
        async with self._coordinator() as address:
            response = await self._client.call(address, request, version)
            check(response.error_code)
        return response

    def _coordinator(self) -> AbstractAsyncContextManager[Address]:
        return self._client.coordinator(CoordinatorType.TRANSACTION, self._transactional_id)
