"""A broker with two log directories tells where its replicas are, until the metadata says so."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from uuid import UUID

from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from ottla.controller.image import MetadataImage
from ottla.controller.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from ottla.node.directory_reports import DirectoryReports
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition
from ottla.runtime.supervisor import Supervisor
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.manager import LogManager

ME = 1
TOPIC = UUID(int=7)
UNASSIGNED = UUID(int=1)
ASSIGNED = AssignReplicasToDirsResponse(
    throttle_time=NO_THROTTLE, error_code=ErrorCode.none, directories=()
)


def partition_of(index: int, replicas: tuple[int, ...]) -> PartitionRecord:
    ids = tuple(map(BrokerId, replicas))
    return PartitionRecord(partition_id=i32(index), topic_id=TOPIC, replicas=ids, isr=ids)


class Kit:
    def __init__(self, *directories: str, refusals: int = 0) -> None:
        self.logs = LogManager(directories, FaultyFilesystem(), lambda: 0)
        self.logs.start(ME)
        self.image = MetadataImage()
        self.image.replay(TopicRecord(name=TopicName("orders"), topic_id=TOPIC))
        self.reported: list[tuple[UUID | None, int]] = []
        self.refusals = refusals
        self.failures: list[BaseException] = []
        self.supervisor = Supervisor(asyncio.get_running_loop(), self.failures.append)
        self.reports = DirectoryReports(
            node_id=ME,
            logs=self.logs,
            image=self.image,
            assign=self.assign,
            broker_epoch=lambda: 5,
            random=Random(1),
            supervisor=self.supervisor,
        )

    async def assign(self, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
        if self.refusals:
            self.refusals -= 1
            raise ApiError(ErrorCode.not_controller)
        assert (request.broker_id, request.broker_epoch) == (ME, 5)
        for directory in request.directories:
            for partition in directory.topics[0].partitions:
                self.reported.append((directory.id_, int(partition.partition_index)))
                self.record(
                    PartitionChangeRecord(
                        partition_id=partition.partition_index,
                        topic_id=TOPIC,
                        directories=(directory.id_, UNASSIGNED),
                    )
                )
        return ASSIGNED

    def record(self, record: PartitionRecord | PartitionChangeRecord) -> None:
        self.image.replay(record)
        self.reports.on_record(record, self.image)

    def create(self, index: int, replicas: tuple[int, ...] = (1, 2)) -> None:
        if ME in replicas:
            self.logs.create(TopicPartition("orders", index), TOPIC, LogConfig())
        self.record(partition_of(index, replicas))

    def directory(self, index: int) -> UUID | None:
        log = self.logs.get(TopicPartition("orders", index))
        assert log is not None
        return self.logs.log_dirs.ids[log.log_directory.path]


def run(test: Callable[[Kit], Awaitable[None]], *directories: str, **options: int) -> None:
    async def main() -> None:
        kit = Kit(*directories, **options)
        async with asyncio.timeout(120):
            await test(kit)
        await kit.supervisor.stop()
        assert kit.failures == []

    asyncio.run(main())


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def test_each_replica_is_told_once_and_those_of_others_never() -> None:
    async def test(kit: Kit) -> None:
        kit.create(0)
        kit.create(1)
        kit.create(2, replicas=(2, 3))
        await until(lambda: len(kit.reported) == 2)
        assert sorted(kit.reported) == sorted((kit.directory(index), index) for index in (0, 1))
        kit.reports.load(kit.image)
        await asyncio.sleep(0)
        assert len(kit.reported) == 2

    run(test, "/a", "/b")


def test_what_was_refused_is_told_again() -> None:
    async def test(kit: Kit) -> None:
        kit.create(0)
        await until(lambda: kit.reported)
        assert kit.reported == [(kit.directory(0), 0)]

    run(test, "/a", "/b", refusals=1)


def test_a_directory_that_failed_is_told_as_well() -> None:
    async def test(kit: Kit) -> None:
        kit.logs.create(TopicPartition("orders", 0), TOPIC, LogConfig()).log_directory.on_error(
            OSError(5, "x")
        )
        kit.record(partition_of(0, (1, 2)))
        await until(lambda: kit.reported)
        assert kit.reported == [(kit.directory(0), 0)]

    run(test, "/a", "/b")


def test_one_directory_is_told_only_in_place_of_another() -> None:
    async def test(kit: Kit) -> None:
        kit.create(0)
        await asyncio.sleep(0)
        assert kit.reported == []
        kit.record(
            PartitionChangeRecord(
                partition_id=i32(0), topic_id=TOPIC, directories=(UUID(int=99), UNASSIGNED)
            )
        )
        await until(lambda: kit.reported)
        assert kit.reported == [(kit.directory(0), 0)]

    run(test, "/a")
