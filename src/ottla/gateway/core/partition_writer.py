"""Records from many callers to one partition, written in batches.

One batch is in flight at a time, so that records are written in the order in which they were
submitted, whatever has to be retried. Meanwhile the next batch fills.

idle -> filling    the first records; after LINGER_S, or when there is enough for a request
     -> sending    until nothing is left that came meanwhile
     -> idle

With acks=all the batches come from an idempotent producer: a retried batch is written once. If a
batch's fate stays unknown, the writer continues as another producer, because its next sequence
number would be a guess.
"""

import asyncio
import enum
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.producing import Appended, init_producer, produce_batch
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import BrokerError, Unreachable, WireError
from ottla.client.wire.producing import Producer
from ottla.protocol.errors import ErrorCode
from ottla.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.records.builder import Record, build_batch

logger = logging.getLogger(__name__)

LINGER_S: Final = 0.002
BATCH_BYTES_MAX: Final = 1_000_000  # Topics accept a little more by default.

_ENOUGH_BYTES: Final = 64 * 1024  # Worth a request; more would only delay the first record.
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_NOBODY: Final = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
# Errors caused by the content of the batch, which may come from another caller.
_CONTENT: Final = {
    ErrorCode.invalid_record,
    ErrorCode.invalid_timestamp,
    ErrorCode.message_too_large,
    ErrorCode.record_list_too_large,
}


class Acks(enum.StrEnum):
    ALL = "all"
    LEADER = "1"
    NONE = "0"


_WIRE_ACKS: Final = {Acks.ALL: -1, Acks.LEADER: 1, Acks.NONE: 0}


class Published(NamedTuple):
    partition: int
    offset: int | None  # None without acknowledgement.
    timestamp_ms: int


Outcomes = Sequence[Published | WireError]


class Submission:
    """One caller's records, in one batch; `outcomes` has one entry per record."""

    __slots__ = ("outcomes", "records", "size")

    def __init__(self, records: list[Record], size: int) -> None:
        self.records = records
        self.size = size  # Approximate, in bytes.
        self.outcomes: asyncio.Future[Outcomes] = asyncio.get_running_loop().create_future()


class ProducerIdentity:
    """The producer that new writers use."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._producer: Producer | None = None
        self._asking = asyncio.Lock()

    async def get(self) -> Producer:
        async with self._asking:
            if self._producer is None:
                self._producer = await init_producer(self._cluster)
            return self._producer

    def renew(self, producer: Producer) -> None:
        """The next `get` returns another producer."""
        if self._producer == producer:
            self._producer = None


class PartitionWriter:
    def __init__(
        self,
        cluster: Cluster,
        identity: ProducerIdentity,
        topic_partition: TopicPartition,
        acks: Acks,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms` bounds a batch including retries."""
        self._cluster = cluster
        self._identity = identity
        self._topic_partition = topic_partition
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._producer = _NOBODY  # Replaced only with acks=all.
        self._sequence = 0  # Of the producer's next record.
        self._waiting: deque[Submission] = deque()
        self._waiting_size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    @property
    def is_filling(self) -> bool:
        """A batch has been started and takes more."""
        return 0 < self._waiting_size < _ENOUGH_BYTES

    @property
    def is_idle(self) -> bool:
        return not self._waiting and self._sending is None

    def write(self, submission: Submission) -> None:
        self._waiting.append(submission)
        self._waiting_size += submission.size
        if self._sending is not None:
            return
        if self._waiting_size >= _ENOUGH_BYTES:
            self._send_now()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_S, self._send_now)

    def _send_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._sending = asyncio.ensure_future(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send_and_tell(self._take())
        finally:
            self._sending = None

    async def _send_and_tell(self, submissions: list[Submission]) -> None:
        """Callers get an outcome even after a bug of ours or an invalid answer."""
        try:
            await self._send(submissions)
        except Exception as error:
            logger.exception("a batch to %s failed", self._topic_partition)
            failure = Unreachable(f"the answer to a batch makes no sense: {error!r}")
            for submission in submissions:
                _finish(submission, [failure] * len(submission.records))

    def _take(self) -> list[Submission]:
        """As many submissions as fit into a batch."""
        taken = [self._waiting.popleft()]
        size = taken[0].size
        while self._waiting and size + self._waiting[0].size <= BATCH_BYTES_MAX:
            taken.append(self._waiting.popleft())
            size += taken[-1].size
        self._waiting_size -= size
        return taken

    async def _send(self, submissions: list[Submission]) -> None:
        outcomes = await self._write(
            [record for submission in submissions for record in submission.records]
        )
        if len(submissions) > 1 and _is_refused_content(outcomes[0]):
            for submission in submissions:
                _finish(submission, await self._write(submission.records))
            return
        begin = 0
        for submission in submissions:
            end = begin + len(submission.records)
            _finish(submission, outcomes[begin:end])
            begin = end

    async def _write(self, records: list[Record]) -> Outcomes:
        try:
            appended = await self._append(records)
        except BrokerError as error:
            if error.code is not ErrorCode.message_too_large or len(records) == 1:
                return [error] * len(records)
        except WireError as error:
            return [error] * len(records)
        else:
            return _published(self._topic_partition.partition, records, appended)
        middle = len(records) // 2
        return [*await self._write(records[:middle]), *await self._write(records[middle:])]

    async def _append(self, records: list[Record]) -> Appended | None:
        if self._acks is Acks.ALL and self._producer is _NOBODY:
            self._producer, self._sequence = await self._identity.get(), 0
        batch = build_batch(
            records,
            producer_id=self._producer.id,
            producer_epoch=self._producer.epoch,
            base_sequence=NO_SEQUENCE if self._producer is _NOBODY else self._sequence,
        )
        try:
            appended = await self._cluster.retry(
                lambda: produce_batch(
                    self._cluster,
                    self._topic_partition,
                    batch,
                    acks=_WIRE_ACKS[self._acks],
                    timeout_ms=self._timeout_ms,
                ),
                timeout_s=self._timeout_ms / 1000,
            )
        except BaseException as error:
            if not _is_refused_content(error):
                self._identity.renew(self._producer)
                self._producer = _NOBODY
            raise
        self._sequence = (self._sequence + len(records)) & _SEQUENCE_MASK
        return appended


def _is_refused_content(outcome: object) -> bool:
    return isinstance(outcome, BrokerError) and outcome.code in _CONTENT


def _finish(submission: Submission, outcomes: Outcomes) -> None:
    if not submission.outcomes.done():  # Otherwise nobody waits for it.
        submission.outcomes.set_result(outcomes)


def _published(
    partition: int, records: list[Record], appended: Appended | None
) -> list[Published | WireError]:
    if appended is None:
        return [Published(partition, None, record.timestamp) for record in records]
    base_offset, append_time_ms = appended
    if append_time_ms is None:
        return [
            Published(partition, offset, record.timestamp)
            for offset, record in enumerate(records, base_offset)
        ]
    return [
        Published(partition, base_offset + index, append_time_ms) for index in range(len(records))
    ]
