"""Flips one bit in every kind of partition file while the node is down.

    python -m tests.cluster.faults.flipped_bits [--nodes 3] [--ending kill]

Each kind of file, and each field of a batch, has a topic of its own, led by one node. That node is
stopped or killed, one bit of each topic is flipped on its disk, and it starts again. Consumers read
everything, from each offset, whoever leads. None of them may get a wrong byte or an offset it did
not request. With replicas everything is there in the end and all are in sync again; without, only
damaged records are refused. The node's log says what it found.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import ElectionType, Producer, TopicPartition
from tests.clients.requests import batch, fetch, fetched, produce, produced
from tests.clients.wire import Wire
from tests.cluster.clients import admin
from tests.cluster.processes import PATIENT, ClusterProcesses, wait_until
from tests.cluster.topics import consume, create, is_whole, state

from ottla.records.batch import HEADER_SIZE, iterate_headers
from ottla.records.decoder import iterate_records

VICTIM: Final = 1
RECORDS: Final = 60
REQUEST_TIMEOUT_S: Final = 60
TRANSACTIONS: Final = 30
ARGUMENTS: Final = (
    *PATIENT,
    *("--set", "log.flush.offset.checkpoint.interval.ms=100"),
    *("--set", "log.scrub.bytes.per.second=100000000"),
    *("--set", "log.scrub.interval.ms=0"),
)
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
CHECKPOINTS: Final = (
    RECOVERY_POINTS,
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
)

# Topics with transactional records, which are checked against the committed ones.
TRANSACTIONAL: Final = "txnindex"


class Flip(NamedTuple):
    """A bit of a file, by its position in a batch or in the file."""

    pattern: str
    byte: int
    bit: int = 0
    in_batch: bool = False
    is_damage: bool = False  # Damages records: without replicas some are refused.


FLIPS: Final = {
    "payload": Flip("*.log", HEADER_SIZE + 9, in_batch=True, is_damage=True),
    "checksum": Flip("*.log", 18, 3, in_batch=True, is_damage=True),
    "base-offset": Flip("*.log", 7, 4, in_batch=True, is_damage=True),
    "base-offset-up": Flip("*.log", 5, 2, in_batch=True, is_damage=True),
    "length": Flip("*.log", 11, 2, in_batch=True, is_damage=True),
    "length-large": Flip("*.log", 8, 5, in_batch=True, is_damage=True),
    "leader-epoch": Flip("*.log", 14, 1, in_batch=True, is_damage=True),
    "magic": Flip("*.log", 16, 0, in_batch=True, is_damage=True),
    "offsets-delta": Flip("*.log", 26, 3, in_batch=True, is_damage=True),
    "index": Flip("*.index", 3, 3),
    "index-position": Flip("*.index", 6, 1),
    "timeindex": Flip("*.timeindex", 6, 1),
    "timeindex-offset": Flip("*.timeindex", 11, 2),
    TRANSACTIONAL: Flip("*.txnindex", 9, 2),
    "snapshot": Flip("*.snapshot", 10, 1),
    "epochs": Flip("leader-epoch-checkpoint", 4, 1),
    "identity": Flip("partition.metadata", 24, 0),
    "untouched": Flip("none", 0),
}


class Trial:
    def __init__(
        self,
        directory: Path,
        nodes: int,
        ending: str,
        topics: list[str],
        say: Callable[[str], None],
    ) -> None:
        self._nodes = nodes
        self._ending = ending
        self._topics = topics
        self._say = say
        self._cluster = ClusterProcesses(directory, nodes, *ARGUMENTS)
        self.findings: list[str] = []
        self.refused: dict[str, list[int]] = {}

    def run(self) -> None:
        with self._cluster:
            for topic in self._topics:
                self._fill(topic)
            self._await_checkpoint()
            self._end_victim()
            for topic in self._topics:
                self._flip(topic)
            self._cluster.restart(VICTIM)
            self._check("flipped bits of partitions")
            self._end_victim()
            for name in CHECKPOINTS:
                _flip_in(self._data / name, 6, 0)
            self._cluster.restart(VICTIM)
            self._check("flipped bits of checkpoints")
            if self._nodes > 1:
                self._damage_the_leader()
            self._check_log()

    @property
    def _data(self) -> Path:
        return self._cluster.node(VICTIM).data

    def _fill(self, topic: str) -> None:
        replicas = [VICTIM, *(node_id for node_id in self._cluster.ids if node_id != VICTIM)]
        config: dict[str, Any] = {"internal_segment_bytes": "1500", "index_interval_bytes": "150"}
        if self._nodes > 1:
            config["min_insync_replicas"] = "2"
        create(self._cluster, topic, assignment=[replicas], **config)
        if topic == TRANSACTIONAL:
            self._fill_with_transactions()
            return
        with Wire(self._cluster.bootstrap_of(VICTIM)) as wire:
            for offset in range(RECORDS):
                answer = produced(wire.call(produce(topic, batch(_value(topic, offset)))))
                assert answer.base_offset == offset

    def _fill_with_transactions(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._cluster.bootstrap, "transactional.id": "t", "linger.ms": 0}
        )
        producer.init_transactions()
        for number in range(TRANSACTIONS):
            producer.begin_transaction()
            producer.produce(TRANSACTIONAL, b"%d" % number * 20)
            producer.flush()
            (producer.abort_transaction if number % 2 else producer.commit_transaction)()

    def _await_checkpoint(self) -> None:
        """Recovery knows what was synced."""
        file = self._data / RECOVERY_POINTS
        lines = {f"{topic} 0 {RECORDS}" for topic in self._topics if topic != TRANSACTIONAL}

        def is_written() -> bool:
            return file.exists() and lines <= {
                line.strip() for line in file.read_text().splitlines()
            }

        wait_until(is_written, "checkpoints")

    def _end_victim(self) -> None:
        if self._ending == "stop":
            self._cluster.terminate(VICTIM)
        else:
            self._cluster.kill(VICTIM)

    def _flip(self, topic: str) -> None:
        flip = FLIPS[topic]
        files = sorted((self._data / f"{topic}-0").glob(flip.pattern))
        if not files:
            return
        file = files[min(1, len(files) - 1)]
        position = 0
        if flip.in_batch:
            positions = [position for position, _ in iterate_headers(file.read_bytes())]
            position = positions[len(positions) // 2]
        _flip_in(file, position + flip.byte, flip.bit)

    def _check(self, after: str) -> None:
        self._say(f"{self._nodes} nodes, {self._ending}: checking after {after}")
        if self._nodes == 1:
            for topic in self._topics:
                self._read_each(topic, VICTIM)
                self._check_refused(topic, after)
            return
        for topic in self._topics:
            for node_id in self._cluster.ids:
                self._read_each(topic, node_id)
        wait_until(lambda: is_whole(self._cluster, *self._topics), "replicas in sync")
        for topic in self._topics:
            self._lead(topic)
            missing = self._missing(topic)
            wait_until(lambda topic=topic: not self._missing(topic), f"{topic}: {missing}")

    def _lead(self, topic: str) -> None:
        """Makes the node with the damaged disk the leader, so that its files are read."""

        def leads() -> bool:
            if state(self._cluster, topic).leader == VICTIM:
                return True
            client = admin(self._cluster)
            topic_partitions = [TopicPartition(topic, 0)]
            client.elect_leaders(ElectionType.PREFERRED, topic_partitions).result(REQUEST_TIMEOUT_S)
            return False

        wait_until(leads, f"{topic} led by {VICTIM}")

    def _missing(self, topic: str) -> list[int]:
        if topic == TRANSACTIONAL:
            self._read_committed()
            return []
        return self._read_each(topic, VICTIM)

    def _read_committed(self) -> None:
        expected = [str(number) * 20 for number in range(0, TRANSACTIONS, 2)]
        found = consume(
            self._cluster.bootstrap, TRANSACTIONAL, len(expected), isolation_level="read_committed"
        )
        if found != expected:
            self.findings.append(f"committed transactions are {found}")

    def _read_each(self, topic: str, node_id: int) -> list[int]:
        """Fetches from each offset, as if starting there; returns those without an answer."""
        if topic == TRANSACTIONAL:
            return []
        unread, offset = [], 0
        while offset < RECORDS:
            with Wire(self._cluster.bootstrap_of(node_id)) as wire:
                try:
                    while offset < RECORDS:
                        if not self._read_one(wire, topic, node_id, offset):
                            unread.append(offset)
                        offset += 1
                except (EOFError, ConnectionError) as error:
                    # A log truncated for a new copy loses bytes that it had announced.
                    self._say(f"{topic} on {node_id}: no answer for {offset}: {error}")
                    unread.append(offset)
                    offset += 1
        self.refused[topic] = unread
        return unread

    def _read_one(self, wire: Wire, topic: str, node_id: int, offset: int) -> bool:
        """Whether there is an answer; problems with it are reported."""
        answer = fetched(wire.call(fetch(topic, offset, max_bytes=10)))
        if answer.error_code or not answer.records:
            return False
        position, header = next(iterate_headers(answer.records))
        [record] = iterate_records(answer.records, position)
        if header.base_offset != offset or record.offset != offset:
            self._report(f"{topic} on {node_id}: {offset} gives {header.base_offset}")
        elif record.value != _value(topic, offset):
            self._report(f"{topic} on {node_id}: {offset} is {record.value!r}")
        return True

    def _report(self, finding: str) -> None:
        if finding not in self.findings:
            self.findings.append(finding)

    def _check_refused(self, topic: str, after: str) -> None:
        """A single node refuses exactly the damaged records, once it has examined them."""
        if topic == TRANSACTIONAL:
            self._read_committed()
            return
        allowed = 2 if FLIPS[topic].is_damage else 0
        wait_until(
            lambda: len(self._read_each(topic, VICTIM)) <= allowed,
            f"{topic} after {after}: {self._read_each(topic, VICTIM)} are refused",
        )
        if allowed and topic != "leader-epoch" and not self.refused[topic]:
            self.findings.append(f"{topic}: what is damaged was served")

    def _damage_the_leader(self) -> None:
        """Damages a running node; it resigns, copies the damaged part, and can lead again."""
        topic = "untouched"
        self._lead(topic)
        files = sorted((self._data / f"{topic}-0").glob("*.log"))
        _flip_in(files[1], HEADER_SIZE + 9, 0)
        wait_until(lambda: f"{topic}-0 is fetched again" in self._log, "damage is found")
        wait_until(lambda: state(self._cluster, topic).is_whole, "the leader is repaired")
        wait_until(lambda: f"the log of {topic}-0 is repaired" in self._log, "repaired")
        self._lead(topic)
        wait_until(lambda: not self._read_each(topic, VICTIM), "all is read from it")

    @property
    def _log(self) -> str:
        return self._cluster.node(VICTIM).log_text()

    def _check_log(self) -> None:
        lines = [line for line in self._log.splitlines() if "damaged" in line]
        for topic in self._topics:
            if FLIPS[topic].is_damage and not any(f"/{topic}-0/" in line for line in lines):
                self.findings.append(f"the log does not tell of the damage to {topic}")
        if "Traceback" in self._log:
            self.findings.append("a traceback in the log")


def _value(topic: str, offset: int) -> bytes:
    return f"{topic} {offset:04d}".encode()


def _flip_in(path: Path, position: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    if content:
        position = min(position, len(content) - 1)
        with path.open("r+b") as file:
            file.seek(position)
            file.write(bytes([content[position] ^ 1 << bit]))


def run(
    directory: Path,
    nodes: int,
    ending: str,
    topics: list[str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Returns the findings."""
    trial = Trial(directory, nodes, ending, topics or list(FLIPS), say)
    trial.run()
    return trial.findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[3, 1])
    parser.add_argument("--ending", nargs="*", default=["stop", "kill"])
    parser.add_argument("--topics", nargs="*")
    options = parser.parse_args()
    findings = []
    for nodes in options.nodes:
        for ending in options.ending:
            with tempfile.TemporaryDirectory() as directory:
                found = run(Path(directory), nodes, ending, options.topics, print)
                findings += [f"{nodes} nodes, {ending}: {finding}" for finding in found]
    print(f"{len(findings)} findings", *findings, sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
