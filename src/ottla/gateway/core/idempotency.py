"""Idempotent requests: a repeated Idempotency-Key gets the first answer.

A request's records and its key are written in one transaction, so neither exists without the other,
whoever crashes in between. Keys are spread over SHARDS; each shard has a partition of the topic
KEYS and a transactional id. A gateway that takes a shard (InitProducerId) fences the previous
owner, whose open transaction is ended by then. So an owner that has read its partition to the end
knows every key in it, and stays right until it is fenced itself, which its next transaction
reveals.

    taken -> key known     the answer of the first request
          -> key unknown   add partitions, write the records, write key and offsets, commit
          -> fenced        take it again, after a pause

Guarantee: within the window, the records of one key are committed once, all or none, through any
number of gateways. Readers of uncommitted records may see those of aborted attempts.
"""

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.producing import produce
from ottla.client.async_wire.reading import fetch, list_offsets
from ottla.client.async_wire.topics import ensure_topic
from ottla.client.async_wire.transactions import (
    add_partitions,
    end_transaction,
    init_transactions,
)
from ottla.client.wire.cluster import Topic, TopicPartition
from ottla.client.wire.errors import BrokerError, OffsetOutOfRange
from ottla.client.wire.offsets import EARLIEST, LATEST, Isolation
from ottla.client.wire.partitioner import partition_of
from ottla.client.wire.producing import Producer
from ottla.gateway.core.errors import KeyReused, TooBusy
from ottla.gateway.core.partition_writer import Published
from ottla.gateway.core.record_json import NewRecord
from ottla.protocol.errors import ErrorCode
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.records.isolation import scan_batches

KEYS: Final = "__gateway_idempotency"
SHARDS: Final = 16

_TRANSACTION_TIMEOUT_MS: Final = 30_000
_TRIES: Final = 6
_PAUSE_S: Final = 0.1
_NO_END: Final = 2**63 - 1
_FENCED: Final = {
    ErrorCode.producer_fenced,
    ErrorCode.invalid_producer_epoch,
    ErrorCode.invalid_producer_id_mapping,
    ErrorCode.invalid_txn_state,
    ErrorCode.out_of_order_sequence_number,
    ErrorCode.unknown_producer_id,
}


class _Entry(NamedTuple):
    fingerprint: str
    timestamp_ms: int
    outcomes: list[Published]


class _Shard:
    def __init__(self, keys: str, index: int) -> None:
        self.topic_partition = TopicPartition(keys, index)
        self.transactional_id = f"{keys}-{index}"
        self.lock = asyncio.Lock()
        self.producer: Producer | None = None  # None: not taken, or fenced.
        self.sequences: dict[TopicPartition, int] = {}  # Sequence of the producer's next batch.
        self.entries: dict[bytes, _Entry] = {}  # By hash, oldest first.
        self.next_offset: int | None = None  # In the shard's partition, after `entries`.


class Idempotency:
    def __init__(self, cluster: Cluster, window_s: int, keys: str = KEYS) -> None:
        """`keys` is the topic for keys."""
        self._cluster = cluster
        self._window_ms = window_s * 1000
        self._keys = keys
        self._shards = [_Shard(keys, index) for index in range(SHARDS)]

    async def publish(
        self, key: str, fingerprint: str, topic: str, known: Topic, records: Sequence[NewRecord]
    ) -> list[Published]:
        """The positions of the records, of this request or of the first with the key.

        Raises KeyReused if that one had another fingerprint.
        """
        digest = hashlib.sha256(f"{topic}\0{key}".encode()).digest()
        shard = self._shards[digest[0] % SHARDS]
        async with shard.lock:
            for attempt in range(_TRIES):
                try:
                    return await self._try(shard, digest, fingerprint, topic, known, records)
                except BrokerError as error:
                    shard.producer = None
                    if error.code not in _FENCED:
                        raise
                except BaseException:  # The next request finds out whether it was committed.
                    shard.producer = None
                    raise
                await asyncio.sleep(_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0))
        raise TooBusy("other gateways are busy with keys like this one")

    async def _try(
        self,
        shard: _Shard,
        digest: bytes,
        fingerprint: str,
        topic: str,
        known: Topic,
        records: Sequence[NewRecord],
    ) -> list[Published]:
        if shard.producer is None:
            await self._take(shard)
        self._forget_old(shard)
        entry = shard.entries.get(digest)
        if entry is None:
            entry = await self._write(shard, digest, fingerprint, topic, known, records)
            shard.entries[digest] = entry
        elif entry.fingerprint != fingerprint:
            raise KeyReused("the Idempotency-Key was used for another request")
        return entry.outcomes

    async def _take(self, shard: _Shard) -> None:
        config = {"retention.ms": str(2 * self._window_ms)}
        await ensure_topic(self._cluster, self._keys, partitions=SHARDS, config=config)
        shard.sequences.clear()
        producer = await init_transactions(
            self._cluster, shard.transactional_id, _TRANSACTION_TIMEOUT_MS
        )
        await self._read(shard)
        shard.producer = producer

    async def _read(self, shard: _Shard) -> None:
        """Read to the end, which nobody else can move any more."""
        topic_partition = shard.topic_partition
        end = (await list_offsets(self._cluster, {topic_partition: LATEST}))[topic_partition] or 0
        if shard.next_offset is None:
            since = _now_ms() - self._window_ms
            found = (await list_offsets(self._cluster, {topic_partition: since}))[topic_partition]
            shard.next_offset = end if found is None else found
        while shard.next_offset < end:
            shard.next_offset = await self._cluster.retry(lambda: self._read_some(shard))

    async def _read_some(self, shard: _Shard) -> int:
        assert shard.next_offset is not None
        connection = await self._cluster.leader(shard.topic_partition)
        try:
            found = await fetch(
                self._cluster,
                connection,
                shard.topic_partition,
                shard.next_offset,
                Isolation.READ_COMMITTED,
            )
        except OffsetOutOfRange:  # Retention deleted the offset.
            starts = await list_offsets(self._cluster, {shard.topic_partition: EARLIEST})
            return starts[shard.topic_partition] or 0
        scan = scan_batches(found.records, shard.next_offset, _NO_END, found.aborted)
        for batch in scan.batches:
            for record in iterate_records(found.records, batch.position):
                if record.key is not None and record.value is not None:
                    shard.entries[record.key] = _parse(record.value, record.timestamp)
        if scan.next_offset == shard.next_offset:
            raise BrokerError(ErrorCode.leader_not_available, f"the end of {shard.topic_partition}")
        return scan.next_offset

    async def _write(
        self,
        shard: _Shard,
        digest: bytes,
        fingerprint: str,
        topic: str,
        known: Topic,
        records: Sequence[NewRecord],
    ) -> _Entry:
        assert shard.producer is not None
        now_ms = _now_ms()
        by_partition: dict[TopicPartition, list[int]] = {}  # Record indexes by partition.
        spare = random.choice(list(known.leaders))
        for index, record in enumerate(records):
            topic_partition = TopicPartition(topic, _choose(record, len(known.leaders), spare))
            by_partition.setdefault(topic_partition, []).append(index)
        await add_partitions(
            self._cluster,
            shard.transactional_id,
            shard.producer,
            [*by_partition, shard.topic_partition],
        )
        offsets = await self._produce(
            shard,
            {
                topic_partition: [_record(records[index], now_ms) for index in indexes]
                for topic_partition, indexes in by_partition.items()
            },
        )
        outcomes: dict[int, Published] = {}
        for topic_partition, indexes in by_partition.items():
            for delta, index in enumerate(indexes):
                timestamp_ms = records[index].timestamp_ms or now_ms
                outcomes[index] = Published(
                    topic_partition.partition, offsets[topic_partition] + delta, timestamp_ms
                )
        entry = _Entry(fingerprint, now_ms, [outcomes[index] for index in range(len(records))])
        written = await self._produce(
            shard,
            {shard.topic_partition: [Record(timestamp=now_ms, key=digest, value=_format(entry))]},
        )
        await end_transaction(self._cluster, shard.transactional_id, shard.producer, commit=True)
        shard.next_offset = written[shard.topic_partition] + 1
        return entry

    async def _produce(
        self, shard: _Shard, by_partition: dict[TopicPartition, list[Record]]
    ) -> dict[TopicPartition, int]:
        assert shard.producer is not None
        batches = {}
        for topic_partition, records in by_partition.items():
            sequence = shard.sequences.get(topic_partition, 0)
            batches[topic_partition] = build_batch(
                records,
                producer_id=shard.producer.id,
                producer_epoch=shard.producer.epoch,
                base_sequence=sequence,
                transactional=True,
            )
            shard.sequences[topic_partition] = (sequence + len(records)) & 0x7FFFFFFF
        return await produce(self._cluster, batches, shard.transactional_id)

    def _forget_old(self, shard: _Shard) -> None:
        oldest_ms = _now_ms() - self._window_ms
        while shard.entries:
            digest = next(iter(shard.entries))
            if shard.entries[digest].timestamp_ms >= oldest_ms:
                return
            del shard.entries[digest]


def _choose(record: NewRecord, count: int, spare: int) -> int:
    if record.partition is not None:
        return record.partition
    return spare if record.key is None else partition_of(record.key, count)


def _record(record: NewRecord, now_ms: int) -> Record:
    return Record(
        timestamp=record.timestamp_ms or now_ms,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def _format(entry: _Entry) -> bytes:
    return json.dumps({"request": entry.fingerprint, "records": entry.outcomes}).encode()


def _parse(value: bytes, timestamp_ms: int) -> _Entry:
    shown = json.loads(value)
    return _Entry(
        shown["request"], timestamp_ms, [Published(*outcome) for outcome in shown["records"]]
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
