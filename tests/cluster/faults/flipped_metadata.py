"""Flips one bit of a metadata file while the node is down.

    python -m tests.cluster.faults.flipped_metadata --flips 3

For every kind of file, after an orderly stop and after kill -9, the node starts on a copy of its
directory with one bit flipped. It must have everything, or refuse to start with a clear message and
without changing anything that it needs.

Then each of three voters is killed in turn, a bit of its metadata log or of its `quorum-state` is
flipped, and it must return and vote, with the data of the other two.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from tests.broker_process import BrokerProcess
from tests.cluster.faults.contents import read_topic
from tests.cluster.faults.history import Partition
from tests.cluster.processes import PATIENT, ClusterProcesses, wait_until
from tests.cluster.topics import consume, create, is_whole, produce

TOPIC: Final = "orders"
PARTITIONS: Final = 2
RECORDS: Final = 200
CHANGES: Final = 12
METADATA: Final = "__cluster_metadata-0"
SMALL_SNAPSHOTS: Final = ("--set", "metadata.log.max.record.bytes.between.snapshots=300")
KINDS: Final = (
    f"{METADATA}/*.log",
    f"{METADATA}/*.index",
    f"{METADATA}/*.timeindex",
    f"{METADATA}/*.checkpoint",
    f"{METADATA}/*.snapshot",
    f"{METADATA}/leader-epoch-checkpoint",
    f"{METADATA}/recovery-point",
    f"{METADATA}/quorum-state",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
    ".ottla_broker_epoch",
    f"{TOPIC}-0/partition.metadata",
)
VOTERS: Final = (1, 2, 3)
REFUSED, WHOLE = "refused", "whole"
Contents = dict[Partition, list[tuple[int, bytes]]]


@dataclass
class Outcome:
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # Ending, kind, result.
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [
            f"{ending:4}  {kind:48} "
            + "  ".join(f"{self.counts[ending, kind, each]} {each}" for each in (REFUSED, WHOLE))
            for ending, kind in sorted({key[:2] for key in self.counts})
        ]
        return "\n".join([*rows, f"{len(self.findings)} findings", *self.findings])


def run_flips(
    directory: Path,
    chance: random.Random,
    flips: int,
    kinds: tuple[str, ...] = KINDS,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    outcome = Outcome()
    for ending in ("stop", "kill"):
        origin = directory / ending
        origin.mkdir()
        contents = _fill(origin, ending)
        for kind in kinds:
            for number, damage in enumerate(_damages(origin / "data", kind, chance, flips)):
                copy = directory / f"{ending}-{kind.replace('/', '-').strip('*')}-{number}"
                shutil.copytree(origin / "data", copy / "data")
                damage(copy / "data")
                result, finding = _start(copy, contents)
                say(f"{ending:4}  {kind:48} {result}")
                outcome.counts[ending, kind, result] += 1
                if finding is None:
                    shutil.rmtree(copy)
                else:
                    outcome.findings.append(f"{copy}: {finding}")
    return outcome


def _fill(directory: Path, ending: str) -> Contents:
    broker = BrokerProcess(directory, *SMALL_SNAPSHOTS)
    broker.start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    for number in range(CHANGES):
        entry = ConfigEntry(
            "retention.ms",
            str(10**9 + number),
            incremental_operation=AlterConfigOpType.SET,
        )
        resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "log_level": 0})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    assert not producer.flush()
    contents = read_topic(broker.bootstrap, TOPIC, PARTITIONS)
    assert sum(map(len, contents.values())) == RECORDS
    assert (broker.data / METADATA).is_dir()
    assert any((broker.data / METADATA).glob("*.checkpoint"))
    getattr(broker, ending)()
    return contents


def _damages(
    data: Path, kind: str, chance: random.Random, count: int
) -> Iterator[Callable[[Path], None]]:
    files = [file for file in sorted(data.glob(kind)) if file.stat().st_size]
    for _ in range(count if files else 0):
        file = chance.choice(files)
        bit = chance.randrange(8 * file.stat().st_size)
        yield partial(_flip, file.relative_to(data), bit)


def _flip(name: Path, bit: int, data: Path) -> None:
    file = data / name
    content = bytearray(file.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


def _start(directory: Path, contents: Contents) -> tuple[str, str | None]:
    """The result, and what is wrong with it."""
    broker = BrokerProcess(directory, *SMALL_SNAPSHOTS)
    broker.launch()
    try:
        broker.wait_until_ready()
    except AssertionError:
        lines = [line for line in broker.log_text().splitlines() if line.startswith("ottla: ")]
        broker.kill()
        right = len(lines) == 1 and str(directory) in lines[0] and "Traceback" not in lines[0]
        return REFUSED, None if right else f"it ended with {broker.log_text()[-500:]!r}"
    try:
        if read_topic(broker.bootstrap, TOPIC, PARTITIONS) != contents:
            return WHOLE, "it serves something else than it had"
        strays = [file.name for file in broker.data.iterdir() if file.name.endswith("-delete")]
        return WHOLE, f"{strays} are about to be removed" if strays else None
    finally:
        broker.stop()


def repair_voters(
    directory: Path,
    chance: random.Random,
    node_ids: tuple[int, ...] = VOTERS,
    say: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Returns the finding, if any."""
    findings = []
    with ClusterProcesses(directory, len(VOTERS), *PATIENT) as cluster:
        cluster.wait_for_voters(*VOTERS)
        create(cluster, TOPIC)
        written = [str(number) for number in range(RECORDS)]
        assert not any(produce(cluster, TOPIC, *written))
        for node_id in node_ids:
            name = chance.choice((f"{METADATA}/{'0' * 20}.log", f"{METADATA}/quorum-state"))
            node = cluster.node(node_id)
            cluster.kill(node_id)
            wait_until(lambda: cluster.leader() in cluster.running, "another leader")
            bit = 8 * chance.randrange(20, (node.data / name).stat().st_size // 2)
            _flip(Path(name), bit, node.data)
            cluster.restart(node_id)
            cluster.wait_for_voters(*VOTERS)
            wait_until(lambda: is_whole(cluster, TOPIC), "all replicas are in sync")
            strays = [path.name for path in node.data.iterdir() if path.name.endswith("-stray")]
            say(f"node {node_id}  {name:48} {len(strays)} set aside")
            if not any(stray.startswith(METADATA) for stray in strays):
                findings.append(f"node {node_id} started with a wrong bit in {name}")
            if TOPIC in " ".join(strays):
                findings.append(f"node {node_id} has set records aside")
        if consume(cluster.bootstrap, TOPIC, RECORDS) != written:
            findings.append("records are missing")
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="ottla-flips-"))
    begin = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {text}", flush=True)

    outcome = run_flips(directory, random.Random(arguments.seed), arguments.flips, say=say)
    print(outcome)
    findings = repair_voters(
        Path(tempfile.mkdtemp(prefix="ottla-voters-")), random.Random(arguments.seed), say=say
    )
    print("\n".join(findings))
    return 1 if outcome.findings or findings else 0


if __name__ == "__main__":
    sys.exit(main())
