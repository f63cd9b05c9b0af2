"""Writes the records that a share group gave up to its dead-letter topic (KIP-1191).

A dead letter has the key, value and headers of the record (unless the group wants only the place),
and headers that say where it came from and why. It goes to the partition of the same number, modulo
the partitions of the dead-letter topic, which is created when it is first needed.
"""

from asyncio import AbstractEventLoop, Future
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Final

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.groups.share.config import TOPIC_PLACEHOLDER, ShareConfig
from ottla.groups.share.delivery import DeadLetter
from ottla.machine.catalog import TopicCatalog
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds
from ottla.records.batch import iterate_headers, read_header
from ottla.records.builder import Headers, Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import ACKS_ALL, Partition
from ottla.runtime.clock import Clock
from ottla.runtime.controller_client import ControllerClient
from ottla.storage.errors import StorageError

DEAD_LETTER_PREFIX: Final = "dlq."
BATCH_BYTES: Final = 1 << 18  # A record more may pass it.

_READ_BYTES: Final = 1 << 20
_CREATION_TIMEOUT_MS: Final = 30_000
_BY_DEFAULT: Final = -1
_THERE: Final = frozenset({ErrorCode.none, ErrorCode.topic_already_exists})


class DeadLetters:
    def __init__(
        self,
        replicas: ReplicaManager,
        catalog: TopicCatalog,
        controller: ControllerClient,
        clock: Clock,
        loop: AbstractEventLoop,
        executor: Executor,
    ) -> None:
        self._replicas = replicas
        self._catalog = catalog
        self._controller = controller
        self._clock = clock
        self._loop = loop
        self._executor = executor

    async def write(
        self, letter: DeadLetter, source: Partition, group_id: str, config: ShareConfig
    ) -> None:
        """Returns when it is committed. Records that retention has taken away are left out."""
        topic, index = source.log.topic_partition
        name = config.dead_letter_topic.replace(TOPIC_PLACEHOLDER, topic)
        if not name:
            return  # Dead letters are not wanted any more.
        target = await self._target(name, index)
        records = await self._loop.run_in_executor(self._executor, _read, source, letter)
        for batch in _batches(
            _dead(record, letter, source, group_id, config) for record in records
        ):
            await self._append(target, batch)

    async def _target(self, topic: str, source_index: int) -> Partition:
        if self._catalog.partition_count(topic) is None:
            await self._create(topic)
        count = self._catalog.partition_count(topic)
        if not count:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"there is no topic {topic}")
        return self._replicas.find(topic, source_index % count)

    async def _create(self, topic: str) -> None:
        response = await self._controller.create_topics(
            CreateTopicsRequest(
                topics=(
                    CreatableTopic(
                        name=TopicName(topic),
                        num_partitions=i32(_BY_DEFAULT),
                        replication_factor=i16(_BY_DEFAULT),
                        assignments=(),
                        configs=(),
                    ),
                ),
                timeout=milliseconds(_CREATION_TIMEOUT_MS),
                validate_only=False,
            )
        )
        (created,) = response.topics
        if created.error_code not in _THERE:
            raise ApiError(
                created.error_code, f"{topic} cannot be created: {created.error_message}"
            )

    async def _append(self, target: Partition, batch: bytearray) -> None:
        appended = target.append(memoryview(batch), read_header(batch), self._clock.now_ms())
        if target.acknowledged(appended, ACKS_ALL):
            return
        committed: Future[None] = self._loop.create_future()

        def on_committed(error: ApiError | None) -> None:
            if committed.done():
                return
            if error is None:
                committed.set_result(None)
            else:
                committed.set_exception(error)

        target.wait_for_acknowledgement(appended, ACKS_ALL, on_committed)
        await committed


def _read(source: Partition, letter: DeadLetter) -> list[Record]:
    """In a thread. Those that the log still has."""
    found: list[Record] = []
    log = source.log
    offset = max(letter.first_offset, log.log_start_offset)
    while offset <= letter.last_offset:
        try:
            part = log.read(offset, _READ_BYTES, log.high_watermark)
            content = b"" if part is None else part.read()
        except (OSError, StorageError) as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        if part is None:
            break
        for position, header in iterate_headers(content):
            if not header.is_control and header.last_offset >= offset:
                found.extend(
                    record
                    for record in iterate_records(content, position)
                    if offset <= record.offset <= letter.last_offset
                )
        offset = part.next_offset
    return found


def _dead(
    record: Record, letter: DeadLetter, source: Partition, group_id: str, config: ShareConfig
) -> Record:
    topic, index = source.log.topic_partition
    said = {
        "topic": topic,
        "partition": index,
        "offset": record.offset,
        "group": group_id,
        "delivery.count": letter.delivery_count,
        "message": letter.reason.value,
    }
    headers: Headers = tuple(
        (f"__dlq.errors.{name}", str(value).encode()) for name, value in said.items()
    )
    if not config.dead_letter_copy_record:
        return Record(timestamp=record.timestamp, headers=headers)
    return Record(
        timestamp=record.timestamp,
        key=record.key,
        value=record.value,
        headers=(*record.headers, *headers),
    )


def _batches(records: Iterator[Record]) -> Iterator[bytearray]:
    waiting: list[Record] = []
    size = 0
    for record in records:
        waiting.append(record)
        size += len(record.key or b"") + len(record.value or b"")
        if size >= BATCH_BYTES:
            yield build_batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield build_batch(waiting)
