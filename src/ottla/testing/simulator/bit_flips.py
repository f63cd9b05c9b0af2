"""Flips bits in the files of a node while it is down.

Only bits whose damage Ottla promises to notice: a leader epoch changed to another plausible one,
and a base offset changed into a gap left by compaction, look right to everybody.
"""

import contextlib
import random
from collections.abc import Iterator
from typing import NamedTuple

from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, TopicPartition
from ottla.records.batch import LENGTH_END, BatchHeader, iterate_headers
from ottla.records.errors import CorruptBatch
from ottla.runtime.recovery_point import RecoveryPoint
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.partition_names import parse_partition
from ottla.storage.segment import LOG_SUFFIX

_EPOCH_END = 16
_OFFSET_END = 8
_CLOSED_SUFFIXES = ("log", "index", "timeindex", "txnindex", "snapshot")
_WHOLE_FILES = ("partition.metadata", "leader-epoch-checkpoint")


class Flip(NamedTuple):
    disk: FaultyFilesystem
    path: str
    partition: TopicPartition | None
    position: int
    value: int  # Of the byte since then.

    def __str__(self) -> str:
        return f"{self.path} at {self.position}"

    @property
    def is_of_records(self) -> bool:
        """Whether it is in records, which nobody but the scrubber may ever read."""
        return self.path.endswith(LOG_SUFFIX) and CLUSTER_METADATA_TOPIC not in self.path

    def is_there(self) -> bool:
        """Whether nobody has repaired, replaced or removed it."""
        if not self.disk.exists(self.path):
            return False
        data = self.disk.read_bytes(self.path)
        return self.position < len(data) and data[self.position] == self.value


def flip(disk: FaultyFilesystem, directory: str, chance: random.Random) -> Flip | None:
    """Flip a bit in one of the files, if any of them may be damaged."""
    paths = list(_paths(disk, directory))
    records = [path for path in paths if path.endswith(LOG_SUFFIX)]
    if chance.random() < 0.5 and records:
        paths = records
    if not paths:
        return None
    path = chance.choice(paths)
    end_offset = _synced_end(disk, path) if CLUSTER_METADATA_TOPIC in path else 2**63
    position = _position(disk.read_bytes(path), path, end_offset, chance)
    if position is None:
        return None
    disk.flip_bit(path, position, chance.randrange(8))
    partition = parse_partition(path.split("/")[-2])
    return Flip(disk, path, partition, position, disk.read_bytes(path)[position])


def _synced_end(disk: FaultyFilesystem, path: str) -> int:
    """Damage past it looks like the torn end of a write."""
    reached = RecoveryPoint(disk, path.rpartition("/")[0]).reached
    return 0 if reached is None else reached.offset


def _paths(disk: FaultyFilesystem, directory: str) -> Iterator[str]:
    """Closed segments, and files that are written as a whole."""
    for name in disk.list(directory):
        partition = parse_partition(name)
        if partition is None:
            continue
        files = disk.list(f"{directory}/{name}")
        if partition.topic == CLUSTER_METADATA_TOPIC:
            yield from (f"{directory}/{name}/{file}" for file in files)
            continue
        active = max((file for file in files if file.endswith(LOG_SUFFIX)), default="")
        for file in files:
            stem, _, suffix = file.rpartition(".")
            is_closed = suffix in _CLOSED_SUFFIXES and stem < active.removesuffix(LOG_SUFFIX)
            path = f"{directory}/{name}/{file}"
            if (is_closed or file in _WHOLE_FILES) and disk.size(path):
                yield path


def _position(data: bytes, path: str, end_offset: int, chance: random.Random) -> int | None:
    """A position in a log, in a batch before the offset."""
    if not path.endswith(LOG_SUFFIX):
        return chance.randrange(len(data)) if data else None
    batches: list[tuple[int, BatchHeader]] = []
    with contextlib.suppress(CorruptBatch):  # It may be damaged already.
        batches.extend(iterate_headers(data))
    batches = [batch for batch in batches if batch[1].next_offset <= end_offset]
    if not batches:
        return None
    start, header = chance.choice(batches)
    is_compacted = "/__" in path
    fields = [
        *([] if is_compacted else range(_OFFSET_END)),
        *range(_OFFSET_END, LENGTH_END),
        *range(_EPOCH_END, header.size),
    ]
    return int(start + chance.choice(fields))
