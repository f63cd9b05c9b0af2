"""SIGKILL while partitions move between log directories: no acknowledged record is lost."""

import random
import shutil
import time
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentClient
from tests.clients.test_log_directories import alter
from tests.clients.wire import Wire
from tests.process.producers import IdempotentWriter, TopicPartition
from tests.process.stored import read_partition

TOPIC = "moved"
PARTITIONS = 4
KILLS = 5
ACKS_BETWEEN_KILLS_MAX = 600
SEGMENTS = {
    "internal.segment.bytes": "4000",
    "index.interval.bytes": "200",
    "file.delete.delay.ms": "0",
}


def test_nothing_is_lost_when_a_move_is_killed(tmp_path: Path) -> None:
    paths = [tmp_path / "data", tmp_path / "second"]
    broker = BrokerProcess(
        tmp_path,
        *("--data", str(paths[1])),
        *("--set", "log.flush.offset.checkpoint.interval.ms=100"),
    )
    with broker:
        ConfluentClient(broker.bootstrap).create_topic(TOPIC, PARTITIONS, SEGMENTS)
        topic_partitions: list[TopicPartition] = [
            (TOPIC, partition) for partition in range(PARTITIONS)
        ]
        writer = IdempotentWriter("writer", broker.bootstrap, topic_partitions)
        writer.start()
        for _ in range(KILLS):
            target = writer.count + random.randrange(1, ACKS_BETWEEN_KILLS_MAX)
            move_all(broker, random.choice(paths))
            while writer.count < target:
                writer.join(0.005)
                assert writer.is_alive(), writer.failure
            broker.kill()
            broker.start()
        writer.end()
        move_all(broker, paths[0])
        while held(paths[1]):
            time.sleep(0.05)
            assert broker.is_running
        with Wire(broker.bootstrap) as wire:
            for topic_partition in topic_partitions:
                stored = {
                    record.offset: int(record.value or b"")
                    for record in read_partition(wire, *topic_partition).records
                }
                numbers = {
                    offset: number
                    for number, offset in writer.acknowledged[topic_partition].items()
                }
                assert stored == numbers
    assert not any(
        path.name.endswith("-future") for directory in paths for path in directory.iterdir()
    )
    shutil.rmtree(tmp_path)


def move_all(broker: BrokerProcess, path: Path) -> None:
    with Wire(broker.bootstrap) as wire:
        alter(wire, str(path), TOPIC, *range(PARTITIONS))


def held(path: Path) -> list[str]:
    """The partitions that have a directory there."""
    names = [child.name for child in path.iterdir()]
    return [
        name
        for name in names
        if name.startswith(TOPIC) and not name.endswith(("-delete", "-stray"))
    ]
