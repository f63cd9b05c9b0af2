"""Files that were damaged while the broker was down: repaired, or refused, never served wrong.

Each kind of damage has its own topic; one broker is stopped or killed, all damage is done, and it
restarts.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.clients.client import Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.requests import batch, fetch, fetched, list_offsets, listed, produce, produced
from tests.clients.wire import Wire
from tests.process.stored import read_partition

from ottla.protocol.errors import ErrorCode
from ottla.records.batch import iterate_headers
from ottla.records.decoder import iterate_records

RECORDS = 90
SMALL_SEGMENTS = {"internal.segment.bytes": "1300", "index.interval.bytes": "100"}
CHECKPOINT_OFTEN = ("--set", "log.flush.offset.checkpoint.interval.ms=50")
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
CHECKPOINTS = (
    RECOVERY_POINTS,
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
STRANGE_NAMES = ("lost+found", "not a partition", "topic-", "-5", "a-b-c", "orders-x", "..x-1")

Damage = Callable[[Path], object]

FILE_DAMAGES: dict[str, Damage] = {
    "deleted": Path.unlink,
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-3]),
    "empty": lambda file: file.write_bytes(b""),
    "garbage": lambda file: file.write_bytes(b"\xff" * (file.stat().st_size or 24)),
}


def _to_all(pattern: str, damage: Damage) -> Damage:
    def work(directory: Path) -> None:
        for file in directory.glob(pattern):
            damage(file)

    return work


def _flip_a_record(directory: Path) -> None:
    """In a closed segment; its indexes are removed too, so that it is read at startup."""
    segment = sorted(directory.glob("*.log"))[3]
    content = bytearray(segment.read_bytes())
    positions = [position for position, _ in iterate_headers(content)]
    content[positions[len(positions) // 2] - 1] ^= 1
    segment.write_bytes(content)
    _to_all("*.*index", Path.unlink)(directory)


def _overwrite_a_segment(directory: Path) -> None:
    segment = sorted(directory.glob("*.log"))[2]
    segment.write_bytes(b"\xff" * segment.stat().st_size)


def _add_strange_files(directory: Path) -> None:
    for name in STRANGE_NAMES:
        (directory.parent / name).mkdir()
        (directory.parent / name / "file").write_text("somebody's")
    (directory.parent / f"{directory.name[:-1]}7").mkdir()  # Not in the metadata.
    (directory.parent / "README").write_text("notes")
    (directory / "notes.txt").write_text("notes")
    (directory / "99.log.bak").write_text("notes")


REPAIRED: dict[str, Damage] = {
    f"{suffix}-{name}": _to_all(f"*.{suffix}", damage)
    for suffix in ("index", "timeindex")
    for name, damage in FILE_DAMAGES.items()
} | {
    "snapshot-deleted": _to_all("*.snapshot", FILE_DAMAGES["deleted"]),
    "snapshot-garbage": _to_all("*.snapshot", FILE_DAMAGES["garbage"]),
    "strange-files": _add_strange_files,
    "untouched": lambda _: None,
}
DAMAGES: dict[str, Damage] = REPAIRED | {
    "flipped-record": _flip_a_record,
    "overwritten-segment": _overwrite_a_segment,
    "lost-directory": shutil.rmtree,
}


@pytest.fixture(scope="module", params=["stop", "kill"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("damaged"), *CHECKPOINT_OFTEN)
    process.start()
    try:
        for topic in DAMAGES:
            _fill(process, topic)
        _await_checkpoint(process)
        getattr(process, request.param)()
        assert (process.data / ".kafka_cleanshutdown").exists() == (request.param == "stop")
        for topic, damage in DAMAGES.items():
            damage(process.data / f"{topic}-0")
        process.start()
        assert not (process.data / ".kafka_cleanshutdown").exists()
        yield process
        assert process.stop() == 0, process.log_text()
        assert "Traceback" not in process.log_text()
    finally:
        process.kill()


def _fill(broker: BrokerProcess, topic: str) -> None:
    ConfluentClient(broker.bootstrap).create_topic(topic, 1, SMALL_SEGMENTS)
    requests = [produce(topic, batch(b"%d" % number)) for number in range(RECORDS)]
    with Wire(broker.bootstrap) as wire:
        for request in requests:
            wire.send(request)
        for offset, request in enumerate(requests):
            assert produced(wire.receive(request)).base_offset == offset


def _await_checkpoint(broker: BrokerProcess) -> None:
    file = broker.data / RECOVERY_POINTS
    with Wire(broker.bootstrap) as wire:
        while not file.exists() or not (
            {f"{topic} 0 {RECORDS}" for topic in DAMAGES}
            <= {line.strip() for line in file.read_text().splitlines()}
        ):
            wire.call(list_offsets("untouched", -1))


def _assert_whole(broker: BrokerProcess, topic: str) -> None:
    with Wire(broker.bootstrap) as wire:
        stored = read_partition(wire, topic)
        assert [record.value for record in stored.records] == [b"%d" % n for n in range(RECORDS)]
        assert listed(wire.call(list_offsets(topic, 1))).offset == 0
        for offset in (0, 1, RECORDS // 2, RECORDS - 1):
            answer = fetched(wire.call(fetch(topic, offset, max_bytes=10)))
            [(_, header)] = iterate_headers(answer.records)
            assert header.base_offset == offset
        assert fetched(wire.call(fetch(topic, RECORDS))).high_watermark == RECORDS


@pytest.mark.parametrize("topic", REPAIRED)
def test_what_can_be_made_again_is(broker: BrokerProcess, topic: str) -> None:
    _assert_whole(broker, topic)


def test_files_of_others_are_left_alone(broker: BrokerProcess) -> None:
    assert all((broker.data / name / "file").exists() for name in STRANGE_NAMES)
    assert (broker.data / "strange-files-0" / "notes.txt").exists()


def test_a_damaged_batch_in_the_middle_is_refused_and_no_other(broker: BrokerProcess) -> None:
    """It was synced, so truncating it would lose acknowledged records."""
    topic = "flipped-record"
    refused = []
    with Wire(broker.bootstrap) as wire:
        for offset in range(RECORDS):
            answer = fetched(wire.call(fetch(topic, offset, max_bytes=10)))
            if answer.error_code == ErrorCode.kafka_storage_error:
                refused.append(offset)
                continue
            [(position, _)] = iterate_headers(answer.records)
            [record] = iterate_records(answer.records, position)
            assert (record.offset, record.value) == (offset, b"%d" % offset)
        assert len(refused) == 1
        assert produced(wire.call(produce(topic, batch(b"a")))).base_offset == RECORDS
        assert listed(wire.call(list_offsets(topic, -1))).offset == RECORDS + 1
    lines = [line for line in broker.log_text().splitlines() if f"/{topic}-0/" in line]
    assert any(f"offsets {refused[0]} to {refused[0]}" in line for line in lines)
    client = ConfluentClient(broker.bootstrap)
    client.delete_topic(topic)
    client.create_topic(topic)
    assert client.produce(topic, [Sent()]) == [0]


def test_a_fetch_that_meets_damage_is_refused(broker: BrokerProcess) -> None:
    """Checkpointed data is not read at startup."""
    topic = "overwritten-segment"
    base_offset = int(sorted((broker.data / f"{topic}-0").glob("*.log"))[2].stem)
    with Wire(broker.bootstrap) as wire:
        for _ in range(2):
            answer = fetched(wire.call(fetch(topic, base_offset + 5, max_bytes=500)))
            assert answer.error_code == ErrorCode.kafka_storage_error
        assert fetched(wire.call(fetch(topic, 0, max_bytes=10))).records
        assert fetched(wire.call(fetch(topic, RECORDS - 1))).records


def test_a_lost_directory_begins_anew(broker: BrokerProcess) -> None:
    """A replaced disk: the topic exists, its records do not."""
    client = ConfluentClient(broker.bootstrap)
    assert client.offsets("lost-directory", 0)[0] == 0
    assert client.produce("lost-directory", [Sent()]) == [0]


def test_a_corrupt_checkpoint_costs_time_not_records(running: BrokerProcess) -> None:
    _fill(running, "orders")
    for content in (b"", b"0\n1\norders zero none\n", b"\0" * 40):
        assert running.stop() == 0
        for name in CHECKPOINTS:
            (running.data / name).write_bytes(content)
        (running.data / "orders-0" / "leader-epoch-checkpoint").write_bytes(content)
        running.start()
        _assert_whole(running, "orders")
