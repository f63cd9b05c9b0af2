"""A producer: sends records to one partition until they are acknowledged, however long that takes.

An idempotent producer has several batches in flight, and resends unacknowledged ones with the same
sequence numbers. Only its first batch goes alone: a log that does not know a producer lets it start
anywhere, as in Kafka. A plain producer sends one batch at a time.
"""

import asyncio
from dataclasses import dataclass, field

from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.produce.v13.request import PartitionProduceData
from kio.static.primitive import Records, i16, i32

from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.records.builder import Record, build_batch
from ottla.testing.simulator.checkers.checker import History
from ottla.testing.simulator.clients.client import Client, RefusedError, Unavailable, check
from ottla.testing.simulator.events import Acknowledged, Sent
from ottla.testing.simulator.violation import Violation

ACKS_ALL = -1
BATCHES_PER_ROUND_MAX = 5
RECORDS_PER_BATCH_MAX = 3
VALUE_BYTES_MAX = 2_000
KEYS_COUNT = 4
PRODUCE_TIMEOUT_MS = 2_000
PAUSE_S_MAX = 30.0  # Less than the time that clients have to finish in.


@dataclass(slots=True)
class Identity:
    """Of an idempotent producer."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


@dataclass(slots=True)
class _Batch:
    base_sequence: int
    records: list[Sent] = field(default_factory=list)


class Producer:
    def __init__(
        self,
        client: Client,
        history: History,
        partition: TopicPartition,
        *,
        idempotent: bool,
        pause_s: float,
        acks: int = ACKS_ALL,
        version: int | None = None,
        keyed: bool = False,
    ) -> None:
        """What is acknowledged by less than all is not told: it may be lost."""
        self._client = client
        self._history = history
        self._partition = partition
        self._idempotent = idempotent
        self._pause_s = pause_s  # Between rounds, on average.
        self._acks = i16(acks)
        self._keyed = keyed
        self._identity = Identity()
        self._next_number = 0
        self._version = version or client.chance.choice((9, 12, 13))

    async def run(self) -> None:
        while not self._client.stopping:
            await self.produce(rounds=1)

    async def produce(self, *, rounds: int) -> None:
        """Some batches in each; returns when all are acknowledged."""
        if self._idempotent and self._identity.producer_id == NO_PRODUCER_ID:
            await self._init()
        for _ in range(rounds):
            pause_s = self._client.chance.expovariate(1.0 / self._pause_s)
            await asyncio.sleep(min(pause_s, PAUSE_S_MAX))
            await self._deliver(self._new_batches())

    async def _init(self) -> None:
        client = self._client
        while self._identity.producer_id == NO_PRODUCER_ID:
            request = InitProducerIdRequest(
                transactional_id=None, transaction_timeout=milliseconds(60_000)
            )
            try:
                response = await client.call_any(request, 5)
                check(response.error_code)
            except Unavailable:
                await client.back_off()
                continue
            self._identity = Identity(response.producer_id, response.producer_epoch)
            client.tell(f"has producer id {response.producer_id}")

    def _new_batches(self) -> list[_Batch]:
        chance = self._client.chance
        pipelines = self._idempotent and self._next_number > 0
        count = chance.randint(1, BATCHES_PER_ROUND_MAX) if pipelines else 1
        return [self._new_batch(chance.randint(1, RECORDS_PER_BATCH_MAX)) for _ in range(count)]

    def _new_batch(self, count: int) -> _Batch:
        batch = _Batch(self._next_number)
        for _ in range(count):
            number, self._next_number = self._next_number, self._next_number + 1
            name = f"{self._client.name} {self._partition} {number}"
            padding = self._client.chance.randrange(VALUE_BYTES_MAX)
            value = name.encode().ljust(padding, b".")
            batch.records.append(
                Sent(self._client.name, self._partition, number, value, self._idempotent)
            )
        return batch

    async def _deliver(self, batches: list[_Batch]) -> None:
        """All of them, in order."""
        for batch in batches:
            for sent in batch.records:
                self._history.tell(sent)
        while batches:
            results = await self._send_all(batches)
            batches = self._unacknowledged(batches, results)
            if batches:
                self._client.forget_leader(self._partition)
                await self._client.back_off()

    async def _send_all(self, batches: list[_Batch]) -> list["int | ErrorCode | None"]:
        """In order, on one connection."""
        try:
            leader = await self._client.find_leader(self._partition)
        except Unavailable:
            return [None] * len(batches)
        create_task = self._client.process.create_task
        return await asyncio.gather(
            *[create_task(self._send(leader.address, batch)) for batch in batches]
        )

    def _unacknowledged(
        self, batches: list[_Batch], results: list[int | ErrorCode | None]
    ) -> list[_Batch]:
        """A batch that comes before the one that it follows is refused, and tried again."""
        left: list[_Batch] = []
        for batch, result in zip(batches, results, strict=True):
            if isinstance(result, ErrorCode):
                if not (result is ErrorCode.out_of_order_sequence_number and left):
                    raise Violation(
                        f"{self._client.name} was refused with {result.name} for number "
                        f"{batch.base_sequence} of {self._partition}"
                    )
                left.append(batch)
            elif result is None:
                left.append(batch)
            else:
                self._acknowledge(batch, result)
        return left

    def _acknowledge(self, batch: _Batch, base_offset: int) -> None:
        last_number = batch.records[-1].number
        self._client.tell(
            f"{self._partition}: {batch.base_sequence}-{last_number} is at {base_offset}"
        )
        if self._acks != ACKS_ALL:
            return
        for index, sent in enumerate(batch.records):
            offset = base_offset + index if base_offset >= 0 else -1
            self._history.tell(Acknowledged(sent, offset))

    async def _send(self, address: Address, batch: _Batch) -> "int | ErrorCode | None":
        """The base offset; None if it must be sent again; or a refusal."""
        try:
            response = await self._client.call(
                address,
                self._request(batch),
                self._version,
                purpose=f"produce {self._partition}",
                timeout_ms=2 * PRODUCE_TIMEOUT_MS,
            )
            (topic,) = response.responses
            (result,) = topic.partition_responses
            if result.error_code is ErrorCode.duplicate_sequence_number:
                return -1
            check(result.error_code)
        except Unavailable:
            return None
        except RefusedError as error:
            return error.code
        return int(result.base_offset)

    def _key(self, sent: Sent) -> bytes | None:
        return b"%d" % (sent.number % KEYS_COUNT) if self._keyed else None

    def _request(self, batch: _Batch) -> ProduceRequest:
        now_ms = self._client.host.now_ms()
        records = build_batch(
            [
                Record(timestamp=now_ms, key=self._key(sent), value=sent.value)
                for sent in batch.records
            ],
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=batch.base_sequence if self._idempotent else NO_SEQUENCE,
        )
        topic, index = self._partition
        data = PartitionProduceData(index=i32(index), records=Records(bytes(records)))
        return ProduceRequest(
            transactional_id=None,
            acks=self._acks,
            timeout=milliseconds(PRODUCE_TIMEOUT_MS),
            topic_data=(
                TopicProduceData(
                    name=topic,
                    topic_id=self._client.topic_ids.get(topic),
                    partition_data=(data,),
                ),
            ),
        )
