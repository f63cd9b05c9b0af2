"""Compares the records in replicas' files; clients see only the leader's.

Call it once clients have stopped writing. Followers have everything a moment later.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from ottla.protocol.topics import CLUSTER_METADATA_TOPIC
from ottla.records.comparison import (
    batches_of,
    first_different_batch,
    first_different_record,
    records_of,
)
from ottla.storage.partition_names import parse_partition

SETTLE_S: Final = 60.0
LOOK_S: Final = 1.0

T = TypeVar("T")


def different_replicas(directories: Mapping[int, Path], settle_s: float = SETTLE_S) -> list[str]:
    """Takes each node's log directory. A difference that lasts this long is not lag."""
    deadline = time.monotonic() + settle_s
    while (found := _differences(directories)) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return found


def _differences(directories: Mapping[int, Path]) -> list[str]:
    replicas: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    for node_id, directory in sorted(directories.items()):
        for path in directory.iterdir():
            if path.is_dir() and _topic(path.name) not in (None, CLUSTER_METADATA_TOPIC):
                replicas[path.name].append((node_id, path))
    try:
        return [
            f"{name} on node {node_id} {problem}; node {first_id} is taken as right"
            for name, ((first_id, first), *others) in sorted(replicas.items())
            for node_id, other in others
            if (problem := _difference(name, first, other))
        ]
    except FileNotFoundError as error:  # A segment was removed, or swapped by compaction.
        return [f"{error.filename} has gone"]


def _difference(name: str, first: Path, other: Path) -> str | None:
    contents = [_segments(path) for path in (first, other)]
    if name.startswith("__"):  # Internal topics are compacted.
        found = first_different_record(*(_each(records_of, content) for content in contents))
    else:
        found = first_different_batch(*(_each(batches_of, content) for content in contents))
    return None if found is None else found.problem


def _segments(directory: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(directory.glob("*.log"))]


def _each(view: Callable[[bytes], Iterable[T]], contents: list[bytes]) -> Iterable[T]:
    for content in contents:
        yield from view(content)


def _topic(name: str) -> str | None:
    """None if it is not a partition's directory, or is one being deleted."""
    parsed = parse_partition(name)
    return None if parsed is None else parsed.topic
