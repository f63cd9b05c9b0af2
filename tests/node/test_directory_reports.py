"""A broker with two log directories tells where its replicas are, until the metadata says so."""

import asyncio
from random import Random
from uuid import UUID

from ottla.controller.image import MetadataImage
from ottla.controller.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from ottla.node.directory_reports import DirectoryReports
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.runtime.supervisor import Supervisor
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.manager import LogManager

ME = 1
TOPIC = UUID(int=7)
UNASSIGNED = UUID(int=1)


class Kit:
    def __init__(self, *directories, refusals=0):
        self.logs = LogManager(directories, FaultyFilesystem(), lambda: 0)
        self.logs.start(ME)
        self.image = MetadataImage()
        self.image.replay(TopicRecord(name="orders", topic_id=TOPIC))
        self.told = []
        self.refusals = refusals
        self.failures = []
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

    async def assign(self, request):
        if self.refusals:
            self.refusals -= 1
            raise ApiError(ErrorCode.not_controller)
        assert (request.broker_id, request.broker_epoch) == (ME, 5)
        for directory in request.directories:
            for one in directory.topics[0].partitions:
                self.told.append((directory.id_, int(one.partition_index)))
                self.record(
                    PartitionChangeRecord(
                        partition_id=one.partition_index,
                        topic_id=TOPIC,
                        directories=(directory.id_, UNASSIGNED),
                    )
                )

    def record(self, record):
        self.image.replay(record)
        self.reports.on_record(record, self.image)

    def create(self, index, replicas=(1, 2)):
        if ME in replicas:
            self.logs.create(TopicPartition("orders", index), TOPIC, LogConfig())
        self.record(
            PartitionRecord(partition_id=index, topic_id=TOPIC, replicas=replicas, isr=replicas)
        )

    def directory(self, index):
        log = self.logs.get(TopicPartition("orders", index))
        return self.logs.log_dirs.ids[log.log_directory.path]


def run(test, *directories, **options):
    async def main():
        kit = Kit(*directories, **options)
        async with asyncio.timeout(120):
            await test(kit)
        await kit.supervisor.stop()
        assert kit.failures == []

    asyncio.run(main())


async def until(condition):
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def test_each_replica_is_told_once_and_those_of_others_never():
    async def test(kit):
        kit.create(0)
        kit.create(1)
        kit.create(2, replicas=(2, 3))
        await until(lambda: len(kit.told) == 2)
        assert sorted(kit.told) == sorted((kit.directory(index), index) for index in (0, 1))
        kit.reports.load(kit.image)
        await asyncio.sleep(0)
        assert len(kit.told) == 2

    run(test, "/a", "/b")


def test_what_was_refused_is_told_again():
    async def test(kit):
        kit.create(0)
        await until(lambda: kit.told)
        assert kit.told == [(kit.directory(0), 0)]

    run(test, "/a", "/b", refusals=1)


def test_a_directory_that_failed_is_told_as_well():
    async def test(kit):
        kit.logs.create(TopicPartition("orders", 0), TOPIC, LogConfig()).log_directory.on_error(
            OSError(5, "x")
        )
        kit.record(PartitionRecord(partition_id=0, topic_id=TOPIC, replicas=(1, 2), isr=(1, 2)))
        await until(lambda: kit.told)
        assert kit.told == [(kit.directory(0), 0)]

    run(test, "/a", "/b")


def test_one_directory_is_told_only_in_place_of_another():
    async def test(kit):
        kit.create(0)
        await asyncio.sleep(0)
        assert kit.told == []
        kit.record(
            PartitionChangeRecord(
                partition_id=0, topic_id=TOPIC, directories=(UUID(int=99), UNASSIGNED)
            )
        )
        await until(lambda: kit.told)
        assert kit.told == [(kit.directory(0), 0)]

    run(test, "/a")
