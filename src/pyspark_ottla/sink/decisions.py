"""The decision log: each sink's last batch that counts, and the transactions in it.

It is a compacted topic keyed by sink id. A decision is written in a transaction under the sink's
own transactional id, in three steps that are safe only together:

1. claim: InitProducerId fences every earlier decider for this sink, and returns once what they
   began is either committed or aborted
2. read the last decision, up to the end that the log had after the claim
3. write the next one; refused if someone else has claimed the sink since

So a sink's decisions are sequential, each made with knowledge of the one before, however many
drivers believe they own the sink. Whoever made the last decision may write the next one without
steps 1 and 2: after another claim, the write would be refused.
"""

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ottla.client.wire.cluster import Cluster, CoordinatorType, TopicPartition
from ottla.client.wire.connection import Connection
from ottla.client.wire.errors import BrokerError, OffsetOutOfRange, WireError, validate_answer
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.offsets import Isolation
from ottla.client.wire.producing import (
    Producer,
    add_partitions,
    add_partitions_request,
    end_request,
    end_transaction,
    init_transactions,
    produce,
    produce_request,
    validate_added,
    written_offsets,
)
from ottla.client.wire.reading import read_records, records_of
from ottla.client.wire.topics import ensure_topic
from ottla.client.wire.transactions import OpenTransaction
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import ProduceRequest
from ottla.records.builder import Record, build_batch
from ottla.records.compression import Compression
from ottla.records.isolation import scan_batches
from pyspark_ottla.positions import last_offsets
from pyspark_ottla.sink.identity import BatchName, deciding_id

TOPIC = "__ottla_sinks"

_PARTITIONS = 16
_CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(16 * 1024 * 1024)}
# Short: a crash between two steps holds up sinks that share the partition.
_TRANSACTION_TIMEOUT_MS = 10_000
# From this version brokers check that a partition is in the transaction (KIP-890).
_GUARDED_PRODUCE_VERSION = 12
_FIRST_STRETCH = 64  # Offsets from the end of the log to look at first.


class SinkFenced(Exception):
    """Someone else has made a decision for this sink in the meantime."""


@dataclass(frozen=True)
class Prepared:
    """What one task leaves open."""

    partition: int
    attempt: int
    producer: Producer


@dataclass(frozen=True)
class Decision:
    """These transactions are the batch: committed, or to be committed by whoever reads this."""

    batch: BatchName
    query_id: str  # Of the stream, stable over restarts; empty for batch writes.
    prepared: tuple[Prepared, ...]

    @property
    def transactions(self) -> list[OpenTransaction]:
        return [
            OpenTransaction(
                self.batch.transactional_id(task.partition, task.attempt), task.producer
            )
            for task in self.prepared
        ]

    def to_json(self) -> bytes:
        tasks = [[task.partition, task.attempt, *task.producer] for task in self.prepared]
        fields = {
            "version": 1,
            "batch": self.batch.batch_id,
            "run": self.batch.run_id,
            "query": self.query_id,
            "prepared": tasks,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def from_json(sink_id: str, data: bytes) -> "Decision":
        fields: dict[str, Any] = json.loads(data)
        return Decision(
            BatchName(sink_id, fields["batch"], fields["run"]),
            fields["query"],
            tuple(
                Prepared(partition, attempt, Producer(producer_id, epoch))
                for partition, attempt, producer_id, epoch in fields["prepared"]
            ),
        )


class _Seen(NamedTuple):
    end: int  # Everything before it is decided and was read.
    last: Decision | None


# In this process, by bootstrap servers, id of the topic, and sink.
_seen: dict[tuple[str, str, str], _Seen] = {}


class Decisions:
    """The decisions of one sink."""

    def __init__(self, cluster: Cluster, sink_id: str) -> None:
        self._cluster = cluster
        self._sink_id = sink_id
        self._partition = _partition_of(sink_id)

    def claim(self) -> "Claim":
        ensure_topic(self._cluster, TOPIC, partitions=_PARTITIONS, config=_CONFIG)
        transactional_id = deciding_id(self._sink_id)
        producer = init_transactions(
            self._cluster, transactional_id, _TRANSACTION_TIMEOUT_MS
        ).producer
        return Claim(self._cluster, self._partition, transactional_id, producer, self.last())

    def look_up(self) -> None:
        """Locate the log, for the next call of `last`."""
        self._cluster.retry(self._topic_exists)

    def last(self) -> Decision | None:
        """The last decision made before this call; None if there is none."""
        if not self._cluster.retry(self._topic_exists):
            return None
        topic_id = str(self._cluster.topic(TOPIC).id)
        key = self._cluster.bootstrap_servers, topic_id, self._sink_id
        seen = self._look_on(_seen[key]) if key in _seen else self._look_back()
        _seen[key] = seen
        return seen.last

    def _look_back(self) -> "_Seen":
        """Search backwards from the end of the log."""
        end = last_offsets(self._cluster, [self._partition])[self._partition]
        stretch = _FIRST_STRETCH
        while True:
            first = max(0, end - stretch)
            data = self._value_in(read_records(self._cluster, self._partition, first, end))
            if data is not None or first == 0:
                return _Seen(end, self._decision(data))
            stretch *= 16

    def _look_on(self, seen: "_Seen") -> "_Seen":
        """Read only what was added since this process last looked.

        The end is asked for: the high watermark of a new leader may be behind a decision, and only
        ListOffsets waits for it.
        """
        try:
            with Fetcher(
                self._cluster, self._partition, Isolation.READ_COMMITTED, wait_ms=0
            ) as fetcher:
                fetcher.ask(seen.end)
                end = last_offsets(self._cluster, [self._partition])[self._partition]
                fetched = fetcher.fetch(seen.end)
                scan = scan_batches(fetched.records, seen.end, end, fetched.aborted)
                found = self._value_in(records_of(fetched, scan, seen.end, end))
        except OffsetOutOfRange:
            return self._look_back()
        rest = read_records(self._cluster, self._partition, scan.next_offset, end)
        data = self._value_in(rest) or found
        return _Seen(end, seen.last if data is None else self._decision(data))

    def _decision(self, data: bytes | None) -> Decision | None:
        return None if data is None else Decision.from_json(self._sink_id, data)

    def _value_in(self, records: Iterable[Record]) -> bytes | None:
        """The last value of the sink's key."""
        key, found = self._sink_id.encode(), None
        for record in records:
            if record.key == key:
                found = record.value
        return found

    def _topic_exists(self) -> bool:
        """Cached once it exists: nobody deletes it."""
        try:
            self._cluster.topic(TOPIC)
        except BrokerError as error:
            if error.code is not ErrorCode.unknown_topic_or_partition:
                raise
            return False
        return True


_FENCED = (
    ErrorCode.producer_fenced,
    ErrorCode.invalid_producer_epoch,
    ErrorCode.invalid_producer_id_mapping,  # For a claim old enough to be forgotten.
)


@dataclass(frozen=True)
class Claim:
    """The right to make decisions, until someone else claims the sink."""

    cluster: Cluster
    partition: TopicPartition
    transactional_id: str
    producer: Producer
    last: Decision | None
    sequence: int = 0

    def decide(self, decision: Decision) -> "Claim":
        """Record the decision; returns the claim to the next one.

        Raises SinkFenced if another claim came in between; nothing is decided then.
        """
        batch = _batch(decision, self.producer, self.sequence)
        try:
            if not self._write_at_once(batch):
                self._write_in_steps(batch)
        except BrokerError as error:
            if error.code not in _FENCED:
                raise
            raise SinkFenced(
                f"another query writes with sinkId {decision.batch.sink_id!r}, or an earlier run of"
                " this one is not gone"
            ) from error
        return replace(self, last=decision, sequence=self.sequence + 1)

    def _write_at_once(self, batch: bytearray) -> bool:
        """Pipeline all requests to a single broker that processes them in order.

        False if nothing is known to be decided. The steps must then be taken one by one: they end
        what this began, and a batch already written is not written again. The broker refuses
        records whose partition is not in the transaction, so a refused request leaves none behind.
        """
        connection = self._broker_of_all()
        if connection is None:
            return False
        requests = (
            add_partitions_request(self.transactional_id, self.producer, [self.partition]),
            produce_request({self.partition: batch}, self.transactional_id),
            end_request(self.transactional_id, self.producer, commit=True),
        )
        try:
            added, produced, ended = _call_all(connection, requests)
            validate_added(added, self.transactional_id)
            for result in written_offsets(produced).values():
                if isinstance(result, BrokerError):
                    raise result
            validate_answer(ended.error_code, f"the end of transaction {self.transactional_id}")
        except BrokerError as error:
            if error.code in _FENCED:
                raise
            return False
        except WireError:
            self.cluster.forget()  # Responses are still on their way.
            return False
        return True

    def _broker_of_all(self) -> Connection | None:
        """The connection to the broker that both coordinates and leads, if one does."""
        try:
            coordinator = self.cluster.coordinator(
                CoordinatorType.TRANSACTION, self.transactional_id
            )
            leader = self.cluster.leader(self.partition)
        except WireError:
            return None
        _, newest = leader.versions.get(ProduceRequest.__api_key__, (0, 0))
        return leader if coordinator is leader and newest >= _GUARDED_PRODUCE_VERSION else None

    def _write_in_steps(self, batch: bytearray) -> None:
        add_partitions(self.cluster, self.transactional_id, self.producer, [self.partition])
        produce(self.cluster, {self.partition: batch}, self.transactional_id)
        end_transaction(self.cluster, self.transactional_id, self.producer, commit=True)


def _call_all(connection: Connection, requests: Iterable[Any]) -> list[Any]:
    sent = [connection.send(request) for request in requests]
    return [connection.receive(request) for request in sent]


def _partition_of(sink_id: str) -> TopicPartition:
    digest = hashlib.sha256(sink_id.encode()).digest()
    return TopicPartition(TOPIC, int.from_bytes(digest[:4]) % _PARTITIONS)


def _batch(decision: Decision, producer: Producer, sequence: int) -> bytearray:
    record = Record(
        timestamp=time.time_ns() // 1_000_000,
        key=decision.batch.sink_id.encode(),
        value=decision.to_json(),
    )
    return build_batch(
        [record],
        compression=Compression.ZSTD,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=True,
    )
